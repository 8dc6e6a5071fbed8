// Command alone lists the packages whose tests run in one goroutine: neither they nor anything
// of this module that they import starts another. The race detector has nothing to find there,
// and takes several times as long to say so; CI runs these without it.
//
//	go run ./tools/alone ./...
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "alone:", err)
		os.Exit(1)
	}
}

func run(patterns []string) error {
	packages, err := list(".", patterns)
	if err != nil {
		return err
	}
	all, err := alone(packages)
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(all, "\n"))
	return nil
}

// listed is a package as go list tells of it.
type listed struct {
	ImportPath, Dir                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

// list returns the packages that patterns name, seen from a folder.
func list(dir string, patterns []string) (map[string]*listed, error) {
	const fields = "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports"
	cmd := exec.Command("go", append([]string{"list", fields, "--"}, patterns...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	all := make(map[string]*listed)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var l listed
		if err := d.Decode(&l); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all[l.ImportPath] = &l
	}
}
