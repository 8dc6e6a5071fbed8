package read

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// oneHot is a CSV file with a row for each label, 1 for that label, and the number of the row as its feature.
func oneHot(names ...string) string {
	b := "a," + strings.Join(names, ",") + "\n"
	for i := range names {
		b += fmt.Sprint(i)
		for k := range names {
			b += fmt.Sprintf(",%d", map[bool]int{true: 1}[k == i])
		}
		b += "\n"
	}
	return b
}

// TestRangeFollowsNames: a label whose name is a number of the range is that number, wherever it stands.
func TestRangeFollowsNames(t *testing.T) {
	asText := []string{"1", "10", "11", "12", "2", "3", "4", "5", "6", "7", "8", "9"}
	for name, c := range map[string]struct {
		names   []string
		numbers []int // of the rows
		columns []string
		note    string // "": none
	}{
		"ascending":       {[]string{"label_3", "label_4", "label_5"}, []int{3, 4, 5}, nil, ""},
		"reversed":        {[]string{"label_5", "label_4", "label_3", "label_2", "label_1"}, []int{5, 4, 3, 2, 1}, nil, "sorted by the numbers in their names, 1 to 5"},
		"listed":          {[]string{"label_1", "label_2", "label_3"}, []int{1, 2, 3}, []string{"3", "2", "1"}, "sorted by the numbers in their names, 1 to 3"},
		"with a fraction": {[]string{"label_3.0", "label_1.0", "label_2.0"}, []int{3, 1, 2}, nil, "1 to 3"},
		"with words":      {[]string{"label_age 10", "label_age 8", "label_age 9"}, []int{10, 8, 9}, nil, "8 to 10"},
		"from 0":          {[]string{"label_0", "label_1", "label_2"}, []int{1, 2, 3}, nil, `"0" to "2" have the numbers 1 to 3 of --range, in this order; --range 0:2`},
		"words":           {[]string{"label_high", "label_low", "label_mid"}, []int{1, 2, 3}, nil, `"high", "low", "mid"), have the numbers 1 to 3`},
		"gaps":            {[]string{"label_10", "label_20", "label_50"}, []int{1, 2, 3}, nil, "have the numbers 1 to 3"},
		"as text":         {prefixed("label_", asText), []int{1, 10, 11, 12, 2, 3, 4, 5, 6, 7, 8, 9}, nil, "1 to 12"},
	} {
		for _, kind := range []dataset.LabelKind{dataset.Distributions, dataset.Counts} {
			o := OpenOptions{Labels: LabelOptions{Kind: kind, Ordered: true, Low: slices.Min(c.numbers), High: slices.Max(c.numbers), Columns: c.columns}}
			src, err := Open(datasettest.WriteFile(t, "x.csv", oneHot(c.names...)), o)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var got []int
			if err := src.Scan(func(r *dataset.Row) error {
				got = append(got, o.Labels.Low+slices.Index(r.Labels, 1))
				return nil
			}); err != nil || !slices.Equal(got, c.numbers) {
				t.Errorf("%s: the rows are %v (%v), want %v", name, got, err, c.numbers)
			}
			notes := strings.Join(errtext.Strings(src.Info().Notes), "\n")
			if !strings.Contains(notes, c.note) || c.note == "" && strings.Contains(notes, "numbers") {
				t.Errorf("%s: notes %s, want %q", name, notes, c.note)
			}
		}
	}
}

func prefixed(prefix string, names []string) (all []string) {
	for _, name := range names {
		all = append(all, prefix+name)
	}
	return all
}

// TestRangeAgainstNames: names that contradict the range are refused, and what the error advises reads the file.
func TestRangeAgainstNames(t *testing.T) {
	for _, c := range []struct {
		names []string
		says  []string
		ways  int
	}{
		{[]string{"label_5", "label_6", "label_7"}, []string{"called 5 to 7", "--range 1:3", "--range 5:7"}, 1},
		{[]string{"label_2", "label_0", "label_1"}, []string{"--range 0:2"}, 1},
		{[]string{"label_30", "label_20", "label_10"}, []string{"--label-columns label_10,label_20,label_30", "--label-columns label_30,label_20,label_10"}, 2},
	} {
		path, o := datasettest.WriteFile(t, "x.csv", oneHot(c.names...)), OpenOptions{Labels: LabelOptions{Ordered: true, Low: 1, High: 3}}
		_, err := Open(path, o)
		var ways *dataset.WaysError
		if !errors.Is(err, dataset.ErrAmbiguous) || !errors.As(err, &ways) || len(ways.Ways) != c.ways {
			t.Errorf("%q: %v", c.names, err)
			continue
		}
		datasettest.MustContain(t, err, c.says...)
		for _, w := range ways.Ways {
			with, _, err := apply(w, o, importer.Options{})
			if err == nil {
				_, err = Open(path, with)
			}
			if err != nil {
				t.Errorf("%q, %+v: %v", c.names, w, err)
			}
		}
		found, err := Inspect(path, o, importer.Options{})
		if err != nil || found.Refused == "" || !slices.ContainsFunc(found.Readings, func(r TriedReading) bool { return r.Refused == "" }) {
			t.Errorf("%q: inspected as %+v, %v", c.names, found, err)
		}
	}
}
