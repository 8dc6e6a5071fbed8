package traincmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// tuned is a job on a small network.
func tuned(data string, more ...string) []string {
	return append([]string{
		"train", "--data", data, "--algorithm", "dldl", "--steps", "40", "--set", "hidden=5", "--set",
		"validation_fraction=0", "--test-fraction", "0.1",
	}, more...)
}

// settingOf returns a resolved setting of a job.
func settingOf(t *testing.T, r *results.Result, name string) string {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(r.Settings, &all); err != nil {
		t.Fatal(err)
	}
	text, _ := all[name].(string)
	return text
}

// TestInitFrom: a network begins from a model that is a file, or one of the cluster by its name or
// digest, or from weights that were sent before: with the same digest on a cluster and in this
// process.
func TestInitFrom(t *testing.T) {
	dir := t.TempDir()
	data, at := cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1), func(name string) string {
		return filepath.Join(dir, name)
	}
	c := cmdtest.Start(t, 1, 1)
	t.Setenv("COPPICE_SERVER", c.Servers())
	var first, want results.Result
	cmdtest.JSON(t, &first, tuned(data, "--name", "first", "--model-out", at("first.model"))...)
	cmdtest.JSON(t, &want, tuned(data, "--local", "--init-from", at("first.model"), "--set", "freeze=hidden1",
		"--model-out", at("tuned.model"))...)
	weights := settingOf(t, &want, "init_from")
	if want.ModelDigest == first.ModelDigest || len(weights) != 64 {
		t.Fatalf("a model %s from the weights %q", want.ModelDigest, weights)
	}
	spec := cmdtest.Write(t, dir, "job.yaml", "algorithm: dldl\ninit_from: "+at("first.model")+"\n")
	for _, how := range [][]string{
		{"--init-from", "first"}, {"--init-from", first.ModelDigest}, {"--set", "init_from=" + at("first.model")},
		{"--init-from", weights}, {"--spec", spec},
	} {
		var got results.Result
		cmdtest.JSON(t, &got, tuned(data, append(how, "--set", "freeze=hidden1")...)...)
		if got.ModelDigest != want.ModelDigest || settingOf(t, &got, "init_from") != weights {
			t.Errorf("%v: digest %s from %s, want %s from %s", how, got.ModelDigest, settingOf(t, &got, "init_from"),
				want.ModelDigest, weights)
		}
	}
	if shown := cmdtest.Works(t, "model", "show", at("tuned.model")); !strings.Contains(shown, "--init-from WEIGHTS") {
		t.Errorf("how to train the model again:\n%s", shown)
	}
	if e := cmdtest.Run(t, tuned(data, "--local", "--init-from", weights)...); e.Code != cli.ExitUsage ||
		!strings.Contains(e.Stderr, weights+": no such file; only a cluster finds weights by a digest") {
		t.Errorf("a digest without a cluster: exit code %d: %s", e.Code, e.Stderr)
	}
	if e := cmdtest.Run(t, tuned(data, "--init-from", "second")...); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, "init_from: second: there is no such file, and no such model of the cluster: ") {
		t.Errorf("exit code %d: %s", e.Code, e.Stderr)
	}
	var none cli.Failure
	if e := cmdtest.Run(t, tuned(data, "--init-from", "second", "-o",
		"json")...); json.Unmarshal([]byte(cmdtest.WithoutNotes(e.Stderr)), &none) != nil || none.Kind != "not_found" ||
		none.Form == nil || none.Form.Value != "init_from" && none.Form.Parameter != "init_from" {
		t.Errorf("a model that does not exist: %s", e.Stderr)
	}
	wider := cmdtest.Write(t, dir, "wider.yaml", "algorithm: dldl\ndropout: 0.1\ninit_from: first\nhidden: 6\n")
	e := cmdtest.Run(t, "train", "--data", data, "--spec", wider)
	if want := wider +
		":3:12: init_from: hidden1 has the shape 3x5 in the weights but 3x6 in this network"; e.Code != cli.ExitUsage ||
		!strings.Contains(e.Stderr, want) {
		t.Errorf("exit code %d: %s, want %s", e.Code, e.Stderr, want)
	}
}

// TestInitFromErrors: what cannot be begun from is named, and nothing is written.
func TestInitFromErrors(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, at := cmdtest.ArtificialFile(t, dir, "set.csv", 100, 1), func(name string) string {
		return filepath.Join(dir, name)
	}
	cmdtest.Works(t, "train", "--local", "--data", data, "--steps", "20", "--model-out", at("linear.model"))
	cmdtest.Write(t, dir, "text.model", "hello")
	deep := func(how ...string) []string {
		return append(how, "--algorithm", "dldl", "--model-out", at("out.model"))
	}
	for _, x := range []struct {
		how  []string
		want string
	}{
		{deep("--init-from", at("none.model")), at("none.model") + ": no such file"},
		{deep("--init-from", dir), "is a directory"},
		{deep("--init-from", at("text.model")), at("text.model") +
			": the initial weights cannot be used: the file is neither a model file nor an .npz archive"},
		{deep("--init-from", at("linear.model")), at("linear.model") +
			": the initial weights cannot be used: the model of ldlf has no layers"},
		{deep("--init-from", "a", "--set", "init_from=b"), "init_from is given twice"},
		{deep("--set", "init_layers=hidden1"), "init_layers: needs init_from"},
		{[]string{"--algorithm", "dldl", "--init-from", at("linear.model"), "--model-out", at("linear.model")},
			"this command reads that file"},
		{[]string{"--init-from", at("linear.model"), "--algorithm", "structrf"}, "structrf has no such setting"},
	} {
		e := cmdtest.Run(t, append([]string{"train", "--local", "--data", data}, x.how...)...)
		code := cli.ExitUsage
		if strings.Contains(x.want, "no such file") || strings.Contains(x.want, "directory") {
			code = cli.ExitFailed // as for every other file
		}
		if e.Code != code || !strings.Contains(e.Stderr, x.want) {
			t.Errorf("%v: exit code %d: %s, want %s", x.how, e.Code, e.Stderr, x.want)
		}
		if _, err := os.Stat(at("out.model")); err == nil {
			t.Errorf("%v: there is a model", x.how)
		}
	}
}
