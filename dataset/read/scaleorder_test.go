package read

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// OneHot is a CSV file with a row for each label, 1 for that label, and the number of the row as its feature.
func OneHot(names ...string) string {
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
		"ascending": {[]string{"label_3", "label_4", "label_5"}, []int{3, 4, 5}, nil, ""},
		"reversed": {[]string{"label_5", "label_4", "label_3", "label_2", "label_1"}, []int{5, 4, 3, 2, 1}, nil,
			"sorted by the numbers in their names, 1 to 5"},
		"listed": {[]string{"label_1", "label_2", "label_3"}, []int{1, 2, 3}, []string{"3", "2", "1"},
			"sorted by the numbers in their names, 1 to 3"},
		"with a fraction": {[]string{"label_3.0", "label_1.0", "label_2.0"}, []int{3, 1, 2}, nil, "1 to 3"},
		"from 0": {[]string{"label_0", "label_1", "label_2"}, []int{1, 2, 3}, nil,
			`"0" to "2" have the numbers 1 to 3 of --range, in this order; --range 0:2`},
		"words": {[]string{"label_high", "label_low", "label_mid"}, []int{1, 2, 3}, nil,
			`"high", "low", "mid"), have the numbers 1 to 3`},
		"gaps":    {[]string{"label_10", "label_20", "label_50"}, []int{1, 2, 3}, nil, "have the numbers 1 to 3"},
		"as text": {prefixed("label_", asText), []int{1, 10, 11, 12, 2, 3, 4, 5, 6, 7, 8, 9}, nil, "1 to 12"},
	} {
		for _, kind := range []dataset.LabelKind{dataset.Distributions, dataset.Counts} {
			o := OpenOptions{Labels: LabelOptions{Kind: kind, Ordered: true, Low: slices.Min(c.numbers),
				High: slices.Max(c.numbers), Columns: c.columns}}
			src, err := Open(datasettest.WriteFile(t, "x.csv", OneHot(c.names...)), o)
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
