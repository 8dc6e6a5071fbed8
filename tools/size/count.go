package main

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// lines counts the lines of files.
type lines struct {
	Code     int `json:"code"`
	Comments int `json:"comments"` // lines that are comments alone
}

// size counts the lines of one folder, without the folders below it.
type size struct {
	Folder string `json:"folder"`
	lines         // of files that are not tests
	// TestCode and TestComments count the files named _test.go.
	TestCode     int `json:"test_code"`
	TestComments int `json:"test_comments"`
}

func (s *size) add(l lines, test bool) {
	if test {
		s.TestCode += l.Code
		s.TestComments += l.Comments
		return
	}
	s.Code += l.Code
	s.Comments += l.Comments
}

// count returns the sizes of folders and of all folders below them, each once, by name.
func count(folders []string) ([]size, error) {
	sizes := make(map[string]*size)
	seen := make(map[string]bool)
	for _, top := range folders {
		top = filepath.Clean(top)
		err := filepath.WalkDir(top, func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				return skip(file, top, d.Name())
			}
			if ext := filepath.Ext(file); seen[file] || ext != ".go" && ext != ".s" {
				return nil
			}
			seen[file] = true
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			dir := filepath.ToSlash(filepath.Dir(file))
			if sizes[dir] == nil {
				sizes[dir] = &size{Folder: dir}
			}
			sizes[dir].add(measure(text), strings.HasSuffix(file, "_test.go"))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	sorted := make([]size, 0, len(sizes))
	for _, dir := range slices.Sorted(maps.Keys(sizes)) {
		sorted = append(sorted, *sizes[dir])
	}
	return sorted, nil
}

// skip leaves out what the go command leaves out.
func skip(file, top, name string) error {
	if file != top && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
		return filepath.SkipDir
	}
	return nil
}

// measure counts the lines of a text. Go's scanner reads assembly too: the tokens that it
// does not know are tokens all the same.
func measure(text []byte) (n lines) {
	const code, comment = 1, 2
	kinds := make([]int, 2+strings.Count(string(text), "\n")) // of each line, the first is 1
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && literal != ";" {
			continue // the end of a line
		}
		kind := code
		if tok == token.COMMENT {
			kind = comment
		}
		first := file.Line(pos)
		for i, line := range strings.Split(literal, "\n") {
			if i == 0 || strings.TrimSpace(line) != "" {
				kinds[first+i] |= kind
			}
		}
	}
	for _, kind := range kinds {
		switch {
		case kind&code != 0:
			n.Code++
		case kind == comment:
			n.Comments++
		}
	}
	return n
}
