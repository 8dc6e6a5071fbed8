package datasetcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/cmd/publicsets"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/shellword"
	"github.com/coppice-ldl/coppice/internal/units"
)

type fetchCmd struct {
	Names  []string `arg:"" optional:"" name:"name" help:"Datasets of the list."`
	List   bool     `help:"List the datasets, without fetching any."`
	To     string   `default:"." placeholder:"FOLDER" help:"Folder for the files (default: the current folder). It is made if its parent exists."`
	From   string   `placeholder:"FILE" help:"List of datasets in place of the built-in list: a line for each file, with columns separated by tabs (docs/guides/get-data.md)."`
	SHA256 string   `name:"sha256" placeholder:"HEX" help:"SHA-256 of the data file, for a dataset without one in the list."`
}

// Help implements kong's HelpProvider.
func (fetchCmd) Help() string {
	return `The command prints the licence, the citation and the command that trains on the dataset. Each file must have
the SHA-256 of the list. A file that the folder already has is not fetched again, and is never replaced. The variables
HTTP_PROXY, HTTPS_PROXY and NO_PROXY name proxies.`
}

// fetchedSet is a dataset whose files are in a folder.
type fetchedSet struct {
	*publicsets.Set

	Data    string `json:"data"`    // path of the data file
	Fetched int    `json:"fetched"` // number of files that were not there yet
	Command string `json:"command"` // trains on the dataset
}

// Run implements `coppice dataset fetch`.
func (c *fetchCmd) Run(a *cli.App) error {
	if c.List != (len(c.Names) == 0) {
		return cli.Usagef("give the name of a dataset, or {list} for the names")
	}
	sets, err := c.sets()
	if err != nil {
		return err
	}
	if c.List {
		if c.SHA256 != "" {
			return cli.Usagef("{sha256} needs the name of a dataset")
		}
		return a.Print(sets, func(w io.Writer) { writeSets(w, sets) })
	}
	chosen, err := c.choose(sets)
	if err != nil {
		return err
	}
	made, err := makeFolder(c.To)
	if err != nil {
		return err
	}
	m := progress.New(a)
	f := publicsets.NewFetcher(c.To, m.Show)
	done := []*fetchedSet{}
	for _, s := range chosen {
		n, err := f.Fetch(a.Ctx, s)
		m.Clear()
		if err != nil {
			if made {
				os.Remove(c.To) // fails if the folder has files
			}
			return err
		}
		done = append(done, newFetchedSet(s, f.Path(s.Files[0].Name), n))
	}
	return a.Print(done, func(w io.Writer) {
		for _, s := range done {
			s.text(w)
		}
	})
}

// sets returns the built-in list or the list of the user.
func (c *fetchCmd) sets() ([]publicsets.Set, error) {
	if c.From == "" {
		return publicsets.BuiltIn(), nil
	}
	f, err := os.Open(c.From)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sets, err := publicsets.Parse(c.From, f)
	if err != nil {
		err = cli.BadData(err)
	}
	return sets, err
}

// choose returns the datasets with the names of the command line. Each of their files has a digest.
func (c *fetchCmd) choose(sets []publicsets.Set) (chosen []*publicsets.Set, err error) {
	if c.SHA256 != "" && len(c.Names) > 1 {
		return nil, cli.Usagef("{sha256} is for a single dataset, but there are %d", len(c.Names))
	}
	for _, name := range c.Names {
		i := slices.IndexFunc(sets, func(s publicsets.Set) bool { return s.Name == name })
		if i < 0 {
			return nil, cli.NotFound(errtext.Errorf(errtext.WrongOption, "%.100q: the list has no such dataset; it has %s",
				name, nearest(sets, name)))
		}
		s := &sets[i]
		if slices.Contains(chosen, s) {
			return nil, cli.Usagef("%s is there twice", name)
		}
		if c.SHA256 != "" {
			digest, err := publicsets.ParseDigest(c.SHA256)
			if err != nil {
				return nil, cli.Usagef("{sha256}: %w", err)
			}
			if known := s.Files[0].SHA256; known != "" && known != digest {
				return nil, cli.Usagef("{sha256=%s}: the list has another SHA-256 of %s: %s", digest, name, known)
			}
			s.Files[0].SHA256 = digest
		}
		if s.Files[0].SHA256 == "" {
			return nil, cli.Usagef("%s: the list has no SHA-256 of its file, so a wrong file would not be noticed; give "+
				"{sha256=HEX}, which sha256sum prints for a copy that you trust", name)
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}

// nearest returns the name that differs from a name in the case of letters, or the names of all datasets.
func nearest(sets []publicsets.Set, name string) string {
	var names []string
	for _, s := range sets {
		if strings.EqualFold(s.Name, name) {
			return s.Name
		}
		names = append(names, s.Name)
	}
	return cli.NameList(names)
}

// makeFolder makes a folder unless it exists, and reports whether it did.
func makeFolder(path string) (made bool, err error) {
	err = os.Mkdir(path, 0o777)
	if !errors.Is(err, os.ErrExist) {
		return err == nil, err
	}
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = cli.Usagef("{to=%s}: is not a folder", path)
	}
	return false, err
}

func newFetchedSet(s *publicsets.Set, path string, fetched int) *fetchedSet {
	words := append([]string{"coppice", "train", "--local", "--data", path}, strings.Fields(s.Flags)...)
	if strings.Contains(s.Flags, "--labels bounded") {
		words = append(words, "--algorithm", "structrf") // the default predicts distributions
	}
	return &fetchedSet{Set: s, Data: path, Fetched: fetched, Command: shellword.Line(words)}
}

// text writes what a user needs to know about a dataset that is there.
func (s *fetchedSet) text(w io.Writer) {
	what := "already there"
	if s.Fetched > 0 {
		what = "fetched"
	}
	fmt.Fprintf(w, "%s: %s\n", s.Data, what)
	pairs := [][2]string{{"content", s.Content}, {"licence", cmp.Or(s.Licence, "not known")},
		{"cite", cmp.Or(s.Citation, "not known")}, {"train", s.Command}}
	cli.WritePairs(w, slices.DeleteFunc(pairs, func(p [2]string) bool { return p[1] == "" }))
}

// writeSets writes the list of datasets.
func writeSets(w io.Writer, sets []publicsets.Set) {
	cli.WriteTable(w, []string{"name", "size", "sha256", "address checked", "content"}, sets,
		func(s publicsets.Set) []string {
			size, digest, checked := int64(0), "none", s.Files[0].Checked
			for _, f := range s.Files {
				if size += f.Bytes; f.SHA256 != "" {
					digest = cli.ShortDigest(s.Files[0].SHA256)
				}
				if f.Checked == publicsets.Never || checked != publicsets.Never && f.Checked < checked {
					checked = f.Checked // the oldest
				}
			}
			known := "not known"
			if size > 0 {
				known = units.Format(size)
			}
			return []string{s.Name, known, digest, checked, s.Content}
		}, 2)
}
