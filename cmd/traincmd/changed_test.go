package traincmd

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// settingsShown returns what a command printed of settings.
func settingsShown(t *testing.T, text string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "settings "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no settings in\n%s", text)
	return ""
}

// TestChangedSettings: train and model show print the settings that differ from the defaults, JSON has all, and the command that
// model show prints trains the same model.
func TestChangedSettings(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, sparse := filepath.Join(dir, "d.csv"), filepath.Join(dir, "s.libsvm")
	cmdtest.Works(t, "dataset", "generate", "--rows", "120", "--features", "4", "--labels", "3", "--kind", "random", "--out", data)
	cmdtest.Write(t, dir, "s.libsvm", strings.Repeat("0.5,0.5 3:1\n0.25,0.75 7:2\n1,0 20:1\n", 20))
	for _, c := range []struct{ data, flags, want string }{
		{data, "--algorithm structrf", "the defaults (-o json has all)"},
		{data, "--algorithm structrf --set trees=3", "trees=3, and the defaults (-o json has all)"},
		{data, "--algorithm ldlf --steps 20", "steps=20, and the defaults (-o json has all)"},
		{data, "--algorithm ldlf --steps 20 --set scaling=none", "scaling=none steps=20, and the defaults (-o json has all)"},
		{data, "--algorithm ldlf --steps 20 --set preset=paper --set leaf_batches=5", "preset=paper leaf_batches=5 steps=20, and the defaults (-o json has all)"},
		{data, "--algorithm ldlf --steps 20 --set features=mlp", "features=mlp steps=20, and the defaults (-o json has all)"},
		{data, "--algorithm ensemble --members structrf:trees=3,aa-knn --set weights=mean", "members=structrf:trees=3,aa-knn weights=mean, and the defaults (-o json has all)"},
		{sparse, "--algorithm sa-bfgs --folds 2", "the defaults (-o json has all)"},
		{sparse, "--algorithm ldlf --steps 20", "steps=20, and the defaults (-o json has all)"},
	} {
		model := filepath.Join(dir, "m.model")
		train := append(strings.Fields("train --local --data "+c.data+" --model-out "+model), strings.Fields(c.flags)...)
		if got := settingsShown(t, cmdtest.Works(t, train...)); got != c.want {
			t.Errorf("%s: settings are %q, want %q", c.flags, got, c.want)
		}
		if strings.Contains(c.flags, "folds") {
			continue
		}
		text := cmdtest.Works(t, "model", "show", model)
		_, again, ok := strings.Cut(text, "To train the model again, with the same data in FILE:\ncoppice ")
		if !ok || len(settingsShown(t, text)) > 300 {
			t.Fatal(text)
		}
		var first struct {
			Digest string
			Job    struct {
				Settings json.RawMessage
			}
		}
		cmdtest.JSON(t, &first, "model", "show", model)
		if !strings.HasPrefix(string(first.Job.Settings), "{") || strings.Count(string(first.Job.Settings), ":") < 4 {
			t.Errorf("%s: JSON has the settings %s", c.flags, first.Job.Settings)
		}
		var r struct {
			ModelDigest string `json:"model_digest"`
		}
		cmdtest.JSON(t, &r, strings.Fields(strings.ReplaceAll(again, " FILE", " "+c.data))...)
		if r.ModelDigest != first.Digest {
			t.Errorf("%s: %s trains another model", c.flags, again)
		}
	}
}
