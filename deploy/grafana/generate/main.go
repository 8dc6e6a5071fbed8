// Command grafana writes the dashboard of deploy/grafana:
//
//	cd deploy/grafana/generate && go run .          # writes it
//	cd deploy/grafana/generate && go run . -check   # fails where the file is not what the code makes
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	out := flag.String("out", "../dashboards/coppice.json", "the dashboard's file")
	check := flag.Bool("check", false, "compare the file with the generated file, and write nothing")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "grafana: %q is no flag\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(*out, *check); err != nil {
		fmt.Fprintf(os.Stderr, "grafana: %v\n", err)
		os.Exit(1)
	}
}

func run(path string, check bool) error {
	d, err := build(rows())
	if err != nil {
		return err
	}
	made, err := render(d)
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(path, made, 0o644)
	}
	have, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return compare(path, have, made)
}

// render returns a dashboard as JSON with sorted keys, the same bytes every time.
func render(d dashboard.Dashboard) ([]byte, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(b, &tree); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(tree)
	return out.Bytes(), err
}

var errBehind = errors.New("differs from the generated file; generate the file with (cd deploy/grafana/generate && go run .)")

// compare fails where a file's bytes are not those that the code makes, with the first line that differs.
func compare(path string, have, made []byte) error {
	if bytes.Equal(have, made) {
		return nil
	}
	a, b := bytes.Split(have, []byte("\n")), bytes.Split(made, []byte("\n"))
	for i := range min(len(a), len(b)) {
		if !bytes.Equal(a[i], b[i]) {
			return fmt.Errorf("%s:%d %w: %q, want %q", path, i+1, errBehind, a[i], b[i])
		}
	}
	return fmt.Errorf("%s %w: %d lines, want %d", path, errBehind, len(a), len(b))
}
