package traincmd

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/ensemble"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/job/spec"
)

// TestAlgorithmList: every algorithm is listed with what it is and its paper, and says when to use it.
func TestAlgorithmList(t *testing.T) {
	var all []algorithmInfo
	cmdtest.JSON(t, &all, "algorithm", "list")
	text := cmdtest.Works(t, "algorithm", "list")
	if len(all) != len(registry.All()) {
		t.Errorf("%d algorithms", len(all))
	}
	for _, a := range all {
		if a.Summary == "" || !strings.HasSuffix(a.When, ".") || strings.Count(a.When, ".") != 1 || a.Description == "" ||
			a.Predicts == "" {
			t.Errorf("%s is not described: %+v", a.Name, a)
		}
		if a.Paper == "" && a.Name != "ensemble" {
			t.Errorf("%s has no paper", a.Name)
		}
		if !strings.Contains(text, "\n"+a.Name+" ") || !strings.Contains(text, a.Summary) {
			t.Errorf("%s is not in the list:\n%s", a.Name, text)
		}
	}
}

// TestMeasuredAlgorithms: each algorithm that predicts distributions was measured, and the guide has the table.
func TestMeasuredAlgorithms(t *testing.T) {
	var all []algorithmInfo
	cmdtest.JSON(t, &all, "algorithm", "list")
	for _, a := range all {
		none := a.Predicts == algorithms.Number.String() || a.Predicts == algorithms.Targets.String()
		if measured := len(a.Measured) > 0; measured == none {
			t.Errorf("%s predicts %s; measured: %v", a.Name, a.Predicts, measured)
		}
	}
	clitest.Generated(t, "../../docs/guides/choose-an-algorithm.md", "<!-- measurements from the code -->\n",
		"<!-- end of measurements -->\n", measuredTable(io.Discard, all).RenderMarkdown()+"\n\n")
}

// TestAlgorithmShow: an algorithm is shown with all of its settings, and a mark where the paper gives the value.
func TestAlgorithmShow(t *testing.T) {
	testkit.WithoutRace(t)
	for _, a := range registry.All() {
		text := cmdtest.Works(t, "algorithm", "show", a.Name())
		for _, p := range a.Params() {
			if !strings.Contains(text, "\n  "+p.Name+"\n") {
				t.Errorf("%s is not shown with %s:\n%s", a.Name(), p.Name, text)
			}
		}
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(line); n > helpWidth+1 && strings.Contains(line, "      ") &&
				!strings.HasPrefix(line, "paper") {
				t.Errorf("%s: a line of %d characters: %s", a.Name(), n, line)
			}
		}
	}
	text := cmdtest.Works(t, "algorithm", "show", "structrf")
	for _, want := range []string{"preset auto: 200\n      preset paper: 50 *\n", "preset paper: 20\n", "Chen et al. 2018",
		"auto, if none is given", "* This value is from the paper"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if text := cmdtest.Works(t, "algorithm", "show", "cpnn"); strings.Contains(text, "*") {
		t.Errorf("a value of cpnn is marked:\n%s", text)
	}
	var v struct {
		Preset   string
		Settings []settingDetail
	}
	cmdtest.JSON(t, &v, "algorithm", "show", "ldlf")
	if d := v.Settings[1]; v.Preset != "auto" || d.Name != "trees" || d.Type != "integer" || *d.Min != 1 ||
		*d.Max != 1000 || d.Auto != "5" || d.Paper != "5" || !d.InPaper {
		t.Errorf("%+v", v)
	}
	if e := cmdtest.Run(t, "algorithm", "show", "ldfl"); e.Code != cli.ExitUsage ||
		!strings.Contains(e.Stderr, `did you mean "ldlf"?`) {
		t.Errorf("an unknown name: exit code %d, %s", e.Code, e.Stderr)
	}
}

// TestShowBest: the word best is described as the algorithms are: with its candidates and its budget, and without
// presets, since it is one.
func TestShowBest(t *testing.T) {
	text := cmdtest.Works(t, "algorithm", "show", spec.Best)
	for _, want := range append(ensemble.Candidates(), "best: the best algorithm by validation", "\n  budget\n",
		"default: 500", "the budget allows", "ensemble with preset best") {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not shown:\n%s", want, text)
		}
	}
	for _, other := range []string{"preset auto", "preset paper", "\n  preset\n"} {
		if strings.Contains(text, other) {
			t.Errorf("%q is shown:\n%s", other, text)
		}
	}
	if list := cmdtest.Works(t, "algorithm", "list"); !strings.Contains(list, "coppice algorithm show best") {
		t.Errorf("the list does not name best:\n%s", list)
	}
	cmdtest.Refused(t, nil, "algorithm show bets", 2, []string{`did you mean "best"`})
}
