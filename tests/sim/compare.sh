#!/usr/bin/env bash
# compare.sh ONE OTHER: two builds of the simulator must see the same in every seed.
set -euo pipefail

if [[ ! -x $2 ]]; then
  echo "there is no $2; build the other compiler's tree first: ./dev build" >&2
  exit 1
fi
diff <("$1" --seeds 1..100 --steps 150 --hash) <("$2" --seeds 1..100 --steps 150 --hash)
diff <("$1" --seeds 1..100 --steps 150 --damage --hash) \
  <("$2" --seeds 1..100 --steps 150 --damage --hash)
