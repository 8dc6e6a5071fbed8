package read

import (
	"fmt"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/featurestats"
)

// TestSuspectsOfMadeLabels: a copy of what labels were made from is found.
func TestSuspectsOfMadeLabels(t *testing.T) {
	content := "copy,x,age\n"
	classes := "copy,x,class\n"
	for i := range 30 {
		content += fmt.Sprintf("%d,%d,%d\n", i*7%10, i*i%13, i*7%10)
		classes += fmt.Sprintf("%d,%d,%s\n", i*7%3, i*i%13, []string{"calm", "glad", "sad"}[i*7%3])
	}
	for content, o := range map[string]LabelOptions{content: {Kind: dataset.Age, Sigma: 1, High: 9}, classes: {Kind: dataset.Class}} {
		src, err := OpenFile(t, "a.csv", content, OpenOptions{Labels: o})
		if err != nil {
			t.Fatal(err)
		}
		w := featurestats.New(src.Info())
		if err := src.Scan(func(r *dataset.Row) error { w.Add(r); return nil }); err != nil {
			t.Fatal(err)
		}
		if got := w.Suspects(); len(got) != 1 || got[0].Feature != 0 || got[0].Kind != featurestats.SuspectLabel {
			t.Errorf("%s: %v", o.Kind, got)
		}
	}
}
