package read

import (
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
)

// A names file has each key once, in small letters.
func TestNamesKeys(t *testing.T) {
	for text, want := range map[string]string{
		`{"labels": ["one", "two"], "LABELS": ["uno", "dos"]}`: `n.json: the key "LABELS" is unknown: write "labels"`,
		`{"labels": ["one"], "rows": [], "labels": ["two"]}`:   `n.json: the key "labels" occurs twice`,
		`{"Rows": ["a"]}`:       `the key "Rows" is unknown: write "rows"`,
		`{"label": ["a"]}`:      `the key "label" is unknown; want {"features": [...]`,
		`["a"]`:                 "want a JSON object",
		`{"rows": ["a"]} {}`:    "the file has more than one JSON value",
		`{"rows": ["a"`:         "EOF",
		`{"rows": {"a": "b"}}`:  "cannot unmarshal object",
		`{"rows": ["a"] "b": 1`: "invalid character",
	} {
		_, err := decodeNames("n.json", strings.NewReader(text))
		datasettest.MustContain(t, err, "n.json: ", want)
	}
	n, err := decodeNames("n.json", strings.NewReader(`{"rows": ["a"], "features": null, "labels": ["b", "c"]}`))
	if err != nil || len(n.Rows) != 1 || n.Features != nil || len(n.Labels) != 2 {
		t.Errorf("%+v, %v", n, err)
	}
}

// Other names than those of the file are refused, also in another order; equal ones are read.
func TestNamesOfFileStay(t *testing.T) {
	named := datasettest.SomeRows(2)
	named.Described.FeatureNames, named.Described.LabelNames, named.Described.HasRowNames,
		named.Described.File = []string{"a", "b"}, []string{"c", "d"}, true, "a.npz"
	for i := range named.Rows {
		named.Rows[i].Name = []string{"one", "two"}[i]
	}
	for _, c := range []struct {
		names Names
		says  string // empty: read
	}{
		{Names{Features: []string{"a", "b"}, Labels: []string{"c", "d"}, Rows: []string{"one", "two"}}, ""},
		{Names{Features: []string{"b", "a"}}, `feature 0 (counted from 0) is "b", but a.npz: its name is "a"`},
		{Names{Features: []string{"a", "p"}}, `feature 1 (counted from 0) is "p"`},
		{Names{Labels: []string{"d", "c"}}, `label 0 (counted from 0) is "d"`},
		{Names{Rows: []string{"two", "one"}}, `the name of this row is "one", but "two" in n.json`},
	} {
		src, err := WithNames(named, "n.json", &c.names)
		if err == nil {
			_, err = datasettest.TryCollect(src)
		}
		if c.says == "" {
			if err != nil || !slices.Equal(src.Info().LabelNames, named.Described.LabelNames) {
				t.Error(err)
			}
			continue
		}
		datasettest.MustBe(t, err, dataset.ErrAmbiguous)
		datasettest.MustContain(t, err, "n.json", "a.npz", c.says)
	}
}
