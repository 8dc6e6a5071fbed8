package param

import "testing"

// TestNear: one letter in three may be another, neighbours that changed places count once, and capitals and
// underscores do not count.
func TestNear(t *testing.T) {
	for _, c := range []struct {
		a, b string
		near bool
	}{
		{"depth", "deph", true}, {"depth", "detph", true}, {"model", "modle", true}, {"trees", "tree", true},
		{"kl", "k-l", true},
		{"Learning_Rate", "learning-rate", true}, {"structrf", "structure", true}, {"ldlf", "ldfl", true}, {"rf", "kf", true},
		{"foo", "job", false}, {"k", "h", false}, {"rf", "knn", false}, {"mlp", "rf", false}, {"steps", "depth", false},
		{"", "a", false},
		{"abcdef", "fedcba", false}, {"sa-iis", "ldl-ldm", false},
	} {
		if Near(c.a, c.b) != c.near || Near(c.b, c.a) != c.near {
			t.Errorf("%q and %q: near is %v, want %v", c.a, c.b, Near(c.a, c.b), c.near)
		}
	}
}

// TestDistance against what insertions, deletions, replacements and swaps take.
func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"a", "", 1}, {"kitten", "sitting", 3},
		{"flaw", "lawn", 2}, {"ca", "abc", 3}, {"abcd", "bcda", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestSuggest: the nearest word, or none.
func TestSuggest(t *testing.T) {
	words := []string{"depth", "trees", "min_samples", "kl"}
	for text, want := range map[string]string{"deth": ` (did you mean "depth"?)`,
		"min-sample": ` (did you mean "min_samples"?)`, "hidden": "", "x": "", "k-l": ` (did you mean "kl"?)`,
		"min_samples_leaf": " (a leaf has no minimum of samples; min_samples is the number of samples that a node needs to " +
			"be split)"} {
		if got := Suggest(text, words); got != want {
			t.Errorf("%s:%s", text, got)
		}
	}
}
