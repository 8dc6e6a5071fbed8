package experiment

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// TestCommandOptions: a command gives each option of a file with its value in one word, since a flag without a value,
// such as --normalize, takes none from the next word.
func TestCommandOptions(t *testing.T) {
	for _, value := range []string{"true", "yes", "1", "True", "no", "-1", "a,b"} {
		s, err := Parse(t.Context(), "e.yaml", []byte("name: e\ndatasets: [{file: a b.csv, name: a, normalize: \""+value+
			"\"}]\nfolds: 3\nmethods: [aa-knn]\n"))
		if err != nil {
			t.Fatal(err)
		}
		m, _ := datatest.Artificial(t, 30)
		p, err := NewPlan(t.Context(), s, &s.Datasets[0], &Data{Manifest: m})
		if err != nil {
			t.Fatal(err)
		}
		l, err := NewLayout(s, []*Plan{p}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewCommands(l, Sources{File: func(path string) string { return path }})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Alone(&result.Run{})
		if want := "coppice train --local --data 'a b.csv' --normalize=" + value + " --algorithm aa-knn "; err != nil ||
			!strings.HasPrefix(got, want) {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}
