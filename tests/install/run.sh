#!/usr/bin/env bash
# Usage: run.sh SOURCE_TREE BUILD_TREE COMPILER
set -euo pipefail
source_tree=$1 build_tree=$2 compiler=$3

work=$build_tree/install-test
prefix=$work/prefix
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build_tree" --prefix "$prefix" >"$work/install.log"

# The complete example is the best stranger.
program=$source_tree/examples/embedded.cc
[[ -f $program ]] || program=$source_tree/tests/install/consumer/main.cc

# Runs a program in a folder of its own, so that it may leave data behind.
run_in_empty_folder() {
  mkdir -p "$work/$1"
  (cd "$work/$1" && "$2")
}

# The server looks for its worker beside itself, and itself never loads libjq.
[[ -x $prefix/bin/hapax-jq ]]
if ldd "$prefix/bin/hapax" | grep -q libjq; then
  echo "hapax links libjq" >&2
  exit 1
fi

echo "== find_package"
cmake -S "$source_tree/tests/install/consumer" -B "$work/cmake" -G Ninja \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" -DPROGRAM="$program" \
  -DSHOP="$source_tree/examples/shop.cc"
cmake --build "$work/cmake"
run_in_empty_folder cmake-data "$work/cmake/consumer"
(cd "$work/cmake-data" && "$prefix/bin/hapax" migrate sqlite:shop.db && "$work/cmake/shop")
"$work/cmake/postgres_shop"
"$work/cmake/receiver"

echo "== pkg-config"
folder=$(find "$prefix" -name hapax.pc -printf '%h')
read -ra flags < <(PKG_CONFIG_PATH=$folder pkg-config --cflags --libs hapax)
"$compiler" -std=c++20 -o "$work/consumer" "$program" "${flags[@]}"
run_in_empty_folder pkg-config-data "$work/consumer"
read -ra flags < <(PKG_CONFIG_PATH=$folder pkg-config --cflags --libs hapax-sqlite)
"$compiler" -std=c++20 -o "$work/shop" "$source_tree/examples/shop.cc" "${flags[@]}"
PKG_CONFIG_PATH=$folder pkg-config --exists hapax-postgres
