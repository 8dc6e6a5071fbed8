package traincmd

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestInspectNode: the node has the samples, the split and the gain that the model's tree prints,
// for the setting of each step; CSV, JSON and figures say the same.
func TestInspectNode(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1)
	for _, step := range []string{"exhaustive", "adaptive"} {
		flags := []string{"--data", data, "--algorithm", "structrf", "--seed", "7", "--test-fraction", "0.2", "--set", "trees=2", "--set", "step=" + step}
		model := filepath.Join(dir, step+".model")
		cmdtest.Works(t, append([]string{"train", "--local", "--model-out", model}, flags...)...)
		var shown struct{ Text string }
		cmdtest.JSON(t, &shown, "model", "show", model, "--tree", "1")
		for _, path := range []string{"", "L", "R"} {
			var n examinedNode
			cmdtest.JSON(t, &n, append([]string{"inspect", "node", "--tree", "1", "--path", path}, flags...)...)
			text := fmt.Sprintf("%s < %.6g  %d samples, gain %.4f\n", n.Split.FeatureName, n.Split.Threshold, n.Samples, n.Split.Gain)
			if n.FeatureName == "" {
				text = fmt.Sprintf("x[%d] < %.6g  %d samples, gain %.4f\n", n.Split.Feature, n.Split.Threshold, n.Samples, n.Split.Gain)
			}
			if !strings.Contains(shown.Text, text) {
				t.Errorf("step %s, path %q: %q is not in the tree\n%s", step, path, text, shown.Text)
			}
			found := n.Best
			if step == "adaptive" {
				found = *n.BestVisited
			}
			if n.Split != found || n.Evaluations.Exhaustive <= n.Evaluations.Adaptive || n.Evaluations.Adaptive == 0 {
				t.Errorf("step %s, path %q: %+v", step, path, n)
			}
			checkListed(t, &n)
		}
	}
}

// checkListed compares the list of thresholds with the sums.
func checkListed(t *testing.T, n *examinedNode) {
	t.Helper()
	visited, best := 0, -1
	for i, at := range n.Thresholds {
		if at.Visited {
			visited++
		}
		if best < 0 || at.Gain > n.Thresholds[best].Gain {
			best = i
		}
	}
	of := n.listed()
	if of.Thresholds != len(n.Thresholds) || of.Visited != visited || of.Gain != n.Thresholds[best].Gain {
		t.Errorf("%+v, listed are %d visits and %+v", of, visited, n.Thresholds[best])
	}
}

// TestInspectNodeWrites: -o csv has each threshold of the feature that is asked for, and figures
// are what their names say.
func TestInspectNodeWrites(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 200, 1)
	svg, png := filepath.Join(dir, "a.svg"), filepath.Join(dir, "b.png")
	flags := []string{"inspect", "node", "--data", data, "--feature", "1"}
	var n examinedNode
	cmdtest.JSON(t, &n, append(flags, "--plot", svg, "--visits-plot", png)...)
	lines, err := csv.NewReader(strings.NewReader(cmdtest.Works(t, append(flags, "-o", "csv")...))).ReadAll()
	if err != nil || len(lines) != len(n.Thresholds)+1 || strings.Join(lines[0], " ") != "feature threshold left gain visited" {
		t.Fatalf("%d lines, error %v", len(lines), err)
	}
	for i, at := range n.Thresholds {
		if line := lines[i+1]; line[1] != strconv.FormatFloat(at.Threshold, 'g', -1, 64) || line[2] != strconv.Itoa(at.Left) || (line[4] == "1") != at.Visited {
			t.Errorf("line %d is %v, the JSON has %+v", i+1, line, at)
		}
	}
	if text := cmdtest.Works(t, flags...); !strings.Contains(text, "set, the root of tree 0") || !strings.Contains(text, "split of the tree") {
		t.Errorf("the text is\n%s", text)
	}
	if picture := cmdtest.Read(t, svg); !strings.Contains(picture, "<svg") || !strings.Contains(picture, "visited by the adaptive step") {
		t.Errorf("the figure begins with %.80s", picture)
	}
	if b, err := os.ReadFile(png); err != nil || !bytes.HasPrefix(b, []byte("\x89PNG")) {
		t.Errorf("a PNG begins with %.8q, error %v", b, err)
	}
}

// TestInspectNodeRefuses: wrong flags are named, and no file stays behind.
func TestInspectNodeRefuses(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 200, 1)
	for _, c := range []struct{ args, want string }{
		{"--algorithm ldlf", "structrf"},
		{"--tree 200", "trees 0 to 199"},
		{"--path LX", "L (left) or R (right)"},
		{"--path LLLLLLLLLLLLLLL", "is a leaf"},
		{"--feature 3", "a number from 0 to 2"},
		{"--feature age", "age"},
		{"--plot a.pdf", "must end in .svg or .png"},
		{"--plot a.svg --visits-plot a.svg", "--plot writes to this file"},
		{"--set folds=3", "folds"},
		{"--set tress=3", "tress"},
		{"--plot " + filepath.Join(dir, "x.svg") + " --tree 999", "trees 0 to 199"},
	} {
		e := cmdtest.Run(t, append([]string{"inspect", "node", "--data", data}, strings.Fields(c.args)...)...)
		if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, c.want) {
			t.Errorf("%s: exit code %d, %s", c.args, e.Code, e.Stderr)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%d files are there, error %v", len(files), err)
	}
}
