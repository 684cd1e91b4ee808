// Runs a fuzz target over its committed corpus, for builds without libFuzzer.
// Usage: fuzz_NAME FOLDER_OR_FILE…
// A crash or a sanitizer report ends it; an empty corpus is an error, since it would prove nothing.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

void replay(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  std::fprintf(stderr, "%s\n", file.c_str());  // The last name printed is the one that crashed.
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

std::vector<fs::path> inputs_of(const fs::path& argument) {
  if (!fs::is_directory(argument)) return {argument};
  std::vector<fs::path> files;
  for (const auto& found : fs::recursive_directory_iterator(argument)) {
    if (found.is_regular_file()) files.push_back(found.path());
  }
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  std::size_t count = 0;
  for (const std::string& argument : arguments) {
    for (const fs::path& file : inputs_of(argument)) {
      replay(file);
      ++count;
    }
  }
  std::printf("%zu inputs replayed\n", count);
  return count > 0 ? 0 : 1;
}
