#!/usr/bin/env bash
# Formats our C++ in place; with --check only says which files differ.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=(-i)
if [[ ${1:-} == --check ]]; then mode=(--dry-run -Werror); fi

folders=()
for folder in include src tests bench examples tools; do
  if [[ -d $folder ]]; then folders+=("$folder"); fi
done
find "${folders[@]}" \( -name '*.h' -o -name '*.cc' \) -print0 |
  xargs -0 --no-run-if-empty clang-format-14 --style=file "${mode[@]}"
