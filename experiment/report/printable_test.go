package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// obeyed reports whether a text has anything but itself to show: what a terminal obeys, or broken bytes.
func obeyed(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 &&
			r <= 0x2069
	})
}

// TestReportsArePrintable: escape sequences in names and errors stay in the data, csv and json, and are shown, not
// obeyed, in what people read, pictures included.
func TestReportsArePrintable(t *testing.T) {
	const hostile = "\x1b[31m\u009b\u202e\x7f\xffz"
	table := sample()
	table.Name += hostile
	for i := range table.Methods {
		table.Methods[i].Name += hostile
	}
	for i := range table.Datasets {
		table.Datasets[i].Name += hostile
	}
	for i := range table.Published {
		p := &table.Published[i]
		p.Dataset, p.Source = p.Dataset+hostile, p.Source+hostile
		if slices.ContainsFunc(table.Methods, func(r result.Method) bool { return r.Name == p.Method+hostile }) {
			p.Method += hostile
		}
	}
	for i := range table.Runs {
		if table.Runs[i].Error != "" {
			table.Runs[i].Error += hostile
		}
	}
	for _, format := range []string{"table", "md", "latex", "html"} {
		var b bytes.Buffer
		if err := Write(&b, table, format, Options{Level: 0.05, AllTests: true, Pictures: "pictures"}); err != nil {
			t.Fatal(err)
		}
		shown := map[string]string{"latex": "U+001B", "md": `\x1b\[31m`}[format]
		if shown == "" {
			shown = `\x1b[31m`
		}
		if obeyed(b.String()) || !strings.Contains(b.String(), shown) {
			t.Errorf("%s: a terminal obeys its report, or it lacks %s:\n%.2000q", format, shown, b.String())
		}
	}
	pictures, err := Figures(table, Options{Level: 0.05})
	if err != nil || len(pictures) == 0 {
		t.Fatal(len(pictures), err)
	}
	named := 0
	for i := range pictures {
		f, err := pictures[i].Draw()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := f.SVG(&b); err != nil {
			t.Fatal(err)
		}
		if named += strings.Count(b.String(), `\x1b`); obeyed(b.String()) {
			t.Errorf("%s: a terminal obeys it, or XML cannot hold it", pictures[i].Name)
		}
		for d := xml.NewDecoder(&b); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", pictures[i].Name, err)
			}
		}
	}
	if named == 0 {
		t.Error("no picture has a name")
	}
	var b bytes.Buffer
	if err := Write(&b, table, "csv", Options{Level: 0.05}); err != nil {
		t.Fatal(err)
	}
	if records, err := csv.NewReader(&b).ReadAll(); err != nil || records[1][2] != table.Methods[0].Name {
		t.Errorf("csv: %q, error %v", records[1][2], err)
	}
	b.Reset()
	if err := Write(&b, table, "json", Options{Level: 0.05}); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("json: %v", err)
	}
}
