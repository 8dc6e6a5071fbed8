package traincmd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	trees "github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestInspectNode: the root has the split and the gain that the model's tree prints, for the setting of each step; JSON
// and figures say the same.
func TestInspectNode(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1)
	svg, png := filepath.Join(dir, "a.svg"), filepath.Join(dir, "b.png")
	for _, step := range []string{"exhaustive", "adaptive"} {
		flags := []string{"--data", data, "--seed", "7", "--test-fraction", "0.2", "--set", "trees=1", "--set",
			"step=" + step}
		model := filepath.Join(dir, step+".model")
		cmdtest.Works(t, append([]string{"train", "--local", "--algorithm", "structrf", "--model-out", model}, flags...)...)
		var shown struct{ Text string }
		cmdtest.JSON(t, &shown, "model", "show", model, "--tree", "0")
		var n examinedNode
		cmdtest.JSON(t, &n, append([]string{"inspect", "node", "--plot", svg, "--visits-plot", png}, flags...)...)
		split := fmt.Sprintf("x[%d] < %.6g  ", n.Split.Feature, n.Split.Threshold)
		if gain := fmt.Sprintf("gain %.4f\n", n.Split.Gain); !strings.Contains(shown.Text, split) ||
			!strings.Contains(shown.Text, gain) {
			t.Errorf("step %s: %q and %q are not in the tree\n%s", step, split, gain, shown.Text)
		}
		found := n.Best
		if step == "adaptive" {
			found = *n.Visited
		}
		if n.Split != found || n.Evaluations.Exhaustive <= n.Evaluations.Adaptive || n.Evaluations.Adaptive == 0 {
			t.Errorf("step %s: %+v", step, n)
		}
		checkListed(t, &n)
		if text := cmdtest.Works(t, append([]string{"inspect", "node"}, flags...)...); !strings.Contains(text,
			"set, the root of the first tree") || !strings.Contains(text, "split of the tree") {
			t.Errorf("the text is\n%s", text)
		}
	}
	if picture := cmdtest.Read(t, svg); !strings.Contains(picture, "<svg") ||
		!strings.Contains(picture, "visited by the adaptive step") {
		t.Errorf("the figure begins with %.80s", picture)
	}
	if b, err := os.ReadFile(png); err != nil || !bytes.HasPrefix(b, []byte("\x89PNG")) {
		t.Errorf("a PNG begins with %.8q, error %v", b, err)
	}
}

// checkListed compares the list of thresholds with the sums.
func checkListed(t *testing.T, n *examinedNode) {
	t.Helper()
	visited, best := 0, 0.0
	for _, at := range n.Thresholds {
		if best = max(best, at.Gain); at.Visited {
			visited++
		}
	}
	at := slices.IndexFunc(n.Features, func(f trees.FeatureGains) bool { return f.Feature == n.Split.Feature })
	if of := n.Features[at]; of.Thresholds != len(n.Thresholds) || of.Visited != visited || of.Gain != best {
		t.Errorf("%+v, listed are %d visits and the gain %v", of, visited, best)
	}
}

// TestInspectNodeRefuses: wrong flags are named, and no file stays behind.
func TestInspectNodeRefuses(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 200, 1)
	constant := cmdtest.Write(t, t.TempDir(), "constant.csv", "x,label_a,label_b\n"+strings.Repeat("1,.25,.75\n", 40))
	for _, c := range []struct{ args, want string }{
		{"--plot a.eps", "must end in .svg, .png or .pdf"},
		{"--plot a.svg --visits-plot a.svg", "--plot writes to this file"},
		{"--set folds=3", "folds"},
		{"--set tress=3", "tress"},
		{"--plot " + filepath.Join(dir, "x.svg") + " --data " + constant, "is a leaf"},
	} {
		args := strings.Fields(c.args)
		if !slices.Contains(args, "--data") {
			args = append(args, "--data", data)
		}
		e := cmdtest.Run(t, append([]string{"inspect", "node"}, args...)...)
		if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, c.want) {
			t.Errorf("%s: exit code %d, %s", c.args, e.Code, e.Stderr)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%d files are there, error %v", len(files), err)
	}
}
