package commands

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/version"
)

// TestCommandsPage: the table of docs/reference/commands.md has every command with its help.
func TestCommandsPage(t *testing.T) {
	clitest.Generated(t, "../../docs/reference/commands.md", "<!-- commands from the code -->\n",
		"<!-- end of commands -->\n",
		commandTables(cli.NewParser(&root{}).Model))
}

// commandTables writes a section for each group of commands, in the order of --help.
func commandTables(app *kong.Application) string {
	var b strings.Builder
	group := ""
	for _, top := range app.Children {
		if top.Hidden {
			continue
		}
		if g := top.Group; g != nil && g.Title != group {
			group = g.Title
			fmt.Fprintf(&b, "### %s\n\n| command | what |\n| --- | --- |\n", strings.TrimSuffix(group, ":"))
		}
		leaves := top.Leaves(true)
		if len(leaves) == 0 {
			leaves = []*kong.Node{top}
		}
		for _, leaf := range leaves {
			fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(usageLine(leaf), "|", `\|`),
				strings.ReplaceAll(leaf.Help, "|", `\|`))
		}
	}
	return strings.ReplaceAll(b.String(), "|\n###", "|\n\n###") + "\n"
}

// usageLine returns a command with its arguments and the flags that it cannot do without.
func usageLine(leaf *kong.Node) string {
	return strings.Join(append([]string{leaf.FullPath()}, required(leaf)...), " ")
}

func required(leaf *kong.Node) (all []string) {
	for _, p := range leaf.Positional {
		all = append(all, strings.ToUpper(strings.NewReplacer("<", "", ">", "", "[", "", "]", "", " ...", "...").
			Replace(p.Summary())))
	}
	for _, f := range leaf.Flags {
		if f.Required {
			all = append(all, "--"+f.Name+" "+f.FormatPlaceHolder())
		}
	}
	return all
}

var (
	inText    = regexp.MustCompile("`(coppice [^`]*)`")
	noCommand = regexp.MustCompile("unknown flag|unexpected argument|unknown command")
)

// TestCommandsInText: commands that pages have within sentences and tables are known, with their flags.
func TestCommandsInText(t *testing.T) {
	testkit.WithoutRace(t)
	const top = "../.."
	pages := []string{"README.md", "ARCHITECTURE.md", "BENCHMARKS.md", "CONTRIBUTING.md", "deploy/README.md"}
	err := fs.WalkDir(os.DirFS(top), "docs", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".md") {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range pages {
		fenced := false
		for i, line := range strings.Split(cmdtest.Read(t, filepath.Join(top, page)), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			if fenced { // the tests of pages run it
				continue
			}
			for _, m := range inText.FindAllStringSubmatch(strings.ReplaceAll(line, "go run ./cmd/", ""), -1) {
				command, _, _ := strings.Cut(m[1], " ...")
				args := strings.Fields(command)
				if len(args) == 1 || strings.ToLower(args[1]) != args[1] || args[1] == version.String {
					continue
				}
				checked++
				parser := cli.NewParser(grammarOf(args[1:]), kong.Exit(func(int) {}), kong.Writers(io.Discard, io.Discard))
				if _, err := parser.Parse(args[1:]); err != nil && noCommand.MatchString(err.Error()) {
					t.Errorf("%s:%d: %s: %v", page, i+1, m[1], err)
				}
			}
		}
	}
	if checked < 80 {
		t.Errorf("only %d commands checked: this looks at the wrong things", checked)
	}
}

// TestGrammarOfOneCommand: the grammar with one command has the command, its subcommands and all flags as the whole
// grammar has them.
func TestGrammarOfOneCommand(t *testing.T) {
	var describe func(n *kong.Node) []string
	describe = func(n *kong.Node) (list []string) {
		list = append(list, n.FullPath()+": "+n.Help, n.Detail)
		for _, group := range n.AllFlags(false) {
			for _, f := range group {
				list = append(list, f.String()+f.Help)
			}
		}
		for _, c := range n.Children {
			list = append(list, describe(c)...)
		}
		return list
	}
	for _, whole := range cli.NewParser(&root{}).Model.Children {
		g := grammarOf([]string{whole.Name})
		if _, isPart := g.(*part); isPart == slices.Contains([]string{"help", "config", "__complete"}, whole.Name) {
			t.Errorf("%s: the grammar is %T", whole.Name, g)
		}
		all := cli.NewParser(g).Model.Children
		at := slices.IndexFunc(all, func(n *kong.Node) bool { return n.Name == whole.Name })
		if at < 0 {
			t.Errorf("%s: the grammar does not have the command", whole.Name)
		} else if diff := cmp.Diff(describe(whole), describe(all[at])); diff != "" {
			t.Errorf("%s: %s", whole.Name, diff)
		}
	}
	for _, args := range [][]string{nil, {"trian"}, {"--help"}, {"train", "--config", "x"}, {"train", "--config=x"}} {
		if _, whole := grammarOf(args).(*root); !whole {
			t.Errorf("%q: not the whole grammar", args)
		}
	}
}
