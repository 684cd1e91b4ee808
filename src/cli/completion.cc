// completion: scripts for shells, made from the commands there are.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/store_commands.h"

namespace hapax::cli {

namespace {

struct CompletionWord {
  std::string word;
  std::string help;
};

// What may follow: by the words before it, as "hapax stream create".
using Completions = std::map<std::string, std::vector<CompletionWord>>;

void collect(const CLI::App& app, const std::string& path, Completions& out) {
  std::vector<CompletionWord>& words = out[path];
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_group().empty()) continue;
    words.push_back({sub->get_name(), sub->get_description()});
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      words.push_back({"--" + name, option->get_description()});
    }
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_group().empty()) continue;
    collect(*sub, path + " " + sub->get_name(), out);
  }
}

std::string joined(const std::vector<CompletionWord>& words) {
  std::string out;
  for (const CompletionWord& word : words) out += (out.empty() ? "" : " ") + word.word;
  return out;
}

// Walks along the words as long as they are commands, then offers what may follow; where a value is
// expected, files.
constexpr std::string_view kBash = R"(_hapax() {
  local current=${COMP_WORDS[COMP_CWORD]} path=hapax word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ -n ${_hapax_words["$path $word"]+x} ]] && path+=" $word"
  done
  COMPREPLY=($(compgen -W "${_hapax_words["$path"]}" -- "$current"))
}
complete -o default -F _hapax hapax
)";

constexpr std::string_view kZsh = R"(_hapax() {
  local at=hapax word
  for word in "${(@)words[2,CURRENT-1]}"; do
    (( ${+_hapax_words[$at $word]} )) && at+=" $word"
  done
  compadd -- ${=_hapax_words[$at]}
  _files
}
compdef _hapax hapax
)";

std::string bash_table(const Completions& all) {
  std::string out = "declare -gA _hapax_words\n";
  for (const auto& [path, words] : all) {
    out += base::format("_hapax_words[{}]=\"{}\"\n", path, joined(words));
  }
  return out;
}

// A key with a space in brackets is a pattern to zsh.
std::string zsh_table(const Completions& all) {
  std::string out = "typeset -gA _hapax_words=(\n";
  for (const auto& [path, words] : all) {
    out += base::format("  '{}' '{}'\n", path, joined(words));
  }
  return out + ")\n";
}

std::string quoted(std::string text) {
  std::erase(text, '\'');
  return "'" + text + "'";
}

// Fish asks a condition per line: the words so far, without options, are exactly the path.
std::string fish_script(const Completions& all) {
  std::string out =
      "function __hapax_at\n"
      "  set -l path hapax\n"
      "  for word in (commandline -opc)[2..]\n"
      "    contains -- \"$path $word\" $__hapax_paths; and set path \"$path $word\"\n"
      "  end\n"
      "  test \"$path\" = \"$argv[1]\"\n"
      "end\n"
      "set -g __hapax_paths";
  for (const auto& [path, words] : all) out += " '" + path + "'";
  out += "\n";
  for (const auto& [path, words] : all) {
    for (const CompletionWord& word : words) {
      const bool option = word.word.starts_with("--");
      out += base::format("complete -c hapax -n '__hapax_at \"{}\"' {} {} -d {}\n", path,
                          option ? "-l" : "-f -a", option ? word.word.substr(2) : word.word,
                          quoted(word.help));
    }
  }
  return out;
}

}  // namespace

void declare_completion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "Print a script that completes commands");
  completion->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer(
      "Example: source <(hapax completion bash)\n"
      "         hapax completion fish > ~/.config/fish/completions/hapax.fish");
  completion->callback([shell, &app] {
    Completions all;
    collect(app, "hapax", all);
    if (*shell == "bash") base::print("{}{}", bash_table(all), kBash);
    if (*shell == "zsh") base::print("#compdef hapax\n{}{}", zsh_table(all), kZsh);
    if (*shell == "fish") base::print("{}", fish_script(all));
  });
}

}  // namespace hapax::cli
