package commands

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/job/spec"
)

//go:embed completion
var scripts embed.FS

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

// Help implements kong's HelpProvider.
func (completionCmd) Help() string {
	return `Prints a script that lets a shell complete commands, flags and their values. For this shell, or in its start file:

  bash:  source <(coppice completion bash)        in ~/.bashrc
  zsh:   source <(coppice completion zsh)         in ~/.zshrc, after compinit
  fish:  coppice completion fish | source         in ~/.config/fish/config.fish`
}

// Run implements `coppice completion`.
func (c *completionCmd) Run(a *cli.App) error {
	b, err := scripts.ReadFile("completion/coppice." + c.Shell)
	if err == nil {
		_, err = a.Data.Write(b)
	}
	return err
}

// completeCmd answers the completion scripts.
type completeCmd struct {
	Words []string `arg:"" optional:"" empty:"" help:"Words of the command line after coppice, up to the cursor."`
}

// Run prints the candidates for the last word, each with a tab and its description. If there are none, the shell
// completes file names.
func (c *completeCmd) Run(a *cli.App, k *kong.Kong) error {
	for _, one := range complete(k.Model.Node, c.Words) {
		fmt.Fprintf(a.Stdout, "%s\t%s\n", one.text, one.what)
	}
	return nil
}

// candidate is a word that may stand at the cursor.
type candidate struct{ text, what string }

// complete returns the words that complete the last of words.
func complete(root *kong.Node, words []string) []candidate {
	if len(words) == 0 {
		return nil
	}
	node, last := root, words[len(words)-1]
	var open *kong.Flag // the flag that still needs its value
	for _, w := range words[:len(words)-1] {
		switch {
		case open != nil:
			open = nil
		case w == "--":
			return nil
		case strings.HasPrefix(w, "-"):
			if f := flagOf(node, w); f != nil && !f.IsBool() && !strings.Contains(w, "=") {
				open = f
			}
		case cli.Subcommand(node, w) != nil:
			node = cli.Subcommand(node, w)
		}
		if slices.Contains([]string{"help", "config show"}, strings.Join(cli.CommandPath(node), " ")) {
			node = root // its argument is another command
		}
	}
	name, _, assigned := strings.Cut(last, "=")
	switch f := flagOf(node, name); {
	case open != nil:
		return starting(last, "", values(node, open, words))
	case strings.HasPrefix(last, "-") && assigned && f != nil:
		return starting(last, name+"=", values(node, f, words))
	case strings.HasPrefix(last, "-"):
		return starting(last, "", flags(node))
	}
	return starting(last, "", commands(node))
}

// flagOf returns the flag of a word such as --steps, --steps=3 or -o; nil for none.
func flagOf(n *kong.Node, word string) *kong.Flag {
	word, _, _ = strings.Cut(word, "=")
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

func flags(n *kong.Node) (all []candidate) {
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			all = append(all, candidate{"--" + f.Name, f.Help})
		}
	}
	return all
}

func commands(n *kong.Node) (all []candidate) {
	for _, c := range n.Children {
		if !c.Hidden {
			all = append(all, candidate{c.Name, c.Help})
		}
	}
	if n.Children == nil {
		for _, p := range n.Positional {
			if p.Tag.Has(namesAlgorithm) {
				all = append(all, describedNames(spec.Choices())...)
			}
			for _, v := range strings.FieldsFunc(p.Enum, func(r rune) bool { return r == ',' }) {
				all = append(all, candidate{v, p.Help})
			}
		}
	}
	return all
}

// namesAlgorithm is the tag of an argument or a flag that names what to train.
const namesAlgorithm = "algorithms"

func describedNames(of []algorithms.Algorithm) (all []candidate) {
	for _, a := range of {
		all = append(all, candidate{a.Name(), a.Doc()})
	}
	return all
}

// values returns the values that a flag may have; for --set they are settings. words are the words of the command line.
func values(n *kong.Node, f *kong.Flag, words []string) (all []candidate) {
	switch {
	case f.Name == "output":
		for _, v := range cli.OutputsOf(n) {
			all = append(all, candidate{v, ""})
		}
	case f.Enum != "":
		for _, v := range f.EnumSlice() {
			if v != "" { // the empty value means that the flag is not given
				all = append(all, candidate{v, ""})
			}
		}
	case f.Name == "algorithm" && f.Tag.Has(namesAlgorithm):
		return describedNames(spec.Choices())
	case f.Name == "algorithm": // of a job or a model that exists
		return describedNames(registry.All())
	case f.Name == "set":
		return settings(algorithmsOf(n, words), words[len(words)-1])
	}
	return all
}

// algorithmsOf lists the algorithms that a command line may train. If the line names one, it is the only one. If a spec
// file may name one, all are listed. Otherwise the default is listed.
func algorithmsOf(n *kong.Node, words []string) []algorithms.Algorithm {
	name := lineValue(words, "--algorithm")
	if f := flagOf(n, "--algorithm"); name == "" && f != nil {
		name = f.Default
	}
	if name == "" && lineValue(words, "--spec") == "" {
		name = spec.DefaultAlgorithm
	}
	if a, err := spec.Choice(name); err == nil {
		return []algorithms.Algorithm{a}
	}
	return registry.All()
}

// lineValue returns the value that a flag has on a line, before its last word, or an empty text.
func lineValue(words []string, flag string) string {
	for i, w := range words[:len(words)-1] {
		switch name, value, assigned := strings.Cut(w, "="); {
		case name != flag:
		case assigned:
			return value
		case i+1 < len(words)-1:
			return words[i+1]
		}
	}
	return ""
}

// settings lists the settings of algorithms, each once; behind NAME= it lists the words that the setting may be.
func settings(of []algorithms.Algorithm, word string) (all []candidate) {
	given, _, valued := strings.Cut(strings.TrimPrefix(word, "--set="), "=")
	seen := make(map[string]bool)
	for _, a := range of {
		for _, p := range a.Params() {
			switch {
			case seen[p.Name] || valued && p.Name != given:
				continue
			case !valued:
				all = append(all, candidate{p.Name + "=", p.Doc})
			case p.Kind == param.KindBool:
				all = append(all, candidate{p.Name + "=true", ""}, candidate{p.Name + "=false", ""})
			default:
				for _, w := range p.Words {
					all = append(all, candidate{p.Name + "=" + w, ""})
				}
			}
			seen[p.Name] = true
		}
	}
	return all
}

// starting adds a prefix to candidates, and keeps the candidates that begin with the word.
func starting(word, prefix string, all []candidate) (kept []candidate) {
	for _, c := range all {
		if c.text = prefix + c.text; strings.HasPrefix(c.text, word) {
			c.what, _, _ = strings.Cut(c.what, "\n")
			kept = append(kept, c)
		}
	}
	return kept
}
