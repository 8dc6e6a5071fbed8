// Package shipped has the specs of experiments that are part of the program.
package shipped

import (
	"bytes"
	"embed"
	"slices"
	"strings"
)

//go:embed *.yaml
var files embed.FS

const extension = ".yaml"

// Spec is a spec that is part of the program.
type Spec struct {
	Name  string // of its file, without .yaml, and of its experiment
	About string // the first line of the file, which is a comment of one sentence
	Text  []byte
}

// Specs lists the specs in the order of their names.
func Specs() []Spec {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the files are in the program
	}
	var list []Spec
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		about, _, _ := bytes.Cut(text, []byte("\n"))
		list = append(list, Spec{strings.TrimSuffix(e.Name(), extension), strings.TrimPrefix(string(about), "# "), text})
	}
	return list
}

// Find returns the spec of a name, and whether there is one.
func Find(name string) (Spec, bool) {
	all := Specs()
	i := slices.IndexFunc(all, func(s Spec) bool { return s.Name == name })
	if i < 0 {
		return Spec{}, false
	}
	return all[i], true
}
