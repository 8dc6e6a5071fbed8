package page_test

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/jobcmd"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/page"
)

// TestSpecOf: a form gives the spec that the command line gives.
func TestSpecOf(t *testing.T) {
	for _, c := range []struct {
		form  url.Values
		flags jobcmd.SpecFlags
	}{
		{url.Values{"dataset": {"d"}, "trees": {""}}, jobcmd.SpecFlags{Dataset: "d", Algorithm: "ldlf"}},
		{url.Values{"algorithm": {"sa-bfgs"}, "dataset": {"d"}, "name": {"n"}, "seed": {" 18446744073709551615 "},
			"l2": {"1e-3"}, "test_fraction": {".1"}}, jobcmd.SpecFlags{Algorithm: "sa-bfgs", Dataset: "d", Name: "n",
			Seed: "18446744073709551615", Set: []string{"l2=1e-3"}, TestFraction: ".1"}},
		{url.Values{"algorithm": {"ldlf"}, "dataset": {"d"}, "folds": {"5"}, "fold": {"0"}, "measures": {"all"},
			"clip": {"pyldl"}, "preset": {"paper"}, "steps": {"12"}, "keep_predictions": {"0"}, "mask": {"golden:0.3"}},
			jobcmd.SpecFlags{Algorithm: "ldlf", Dataset: "d", Folds: "5", Fold: "0", Measures: "all", Clip: "pyldl",
				Set: []string{"preset=paper", "keep_predictions=0"}, Steps: "12", Mask: "golden:0.3"}},
		{url.Values{"algorithm": {"ensemble"}, "dataset": {"d"}, "members": {"structrf:trees=9,ldlf"},
			"group_folds": {"true"}},
			jobcmd.SpecFlags{Algorithm: "ensemble", Dataset: "d", Members: "structrf:trees=9,ldlf", Folds: "groups"}},
		{url.Values{"algorithm": {"sa-bfgs"}, "dataset": {"d"}, "enhance": {"lp"}, "normalise": {"sum"}, "binarise": {"0.5"},
			"train_fraction": {"0.5"}}, jobcmd.SpecFlags{Algorithm: "sa-bfgs", Dataset: "d", Enhance: "lp", Normalise: "sum",
			Binarise: "0.5", TrainFraction: "0.5"}},
	} {
		want, err := c.flags.Read()
		if err != nil {
			t.Fatal(err)
		}
		got, mistakes := page.SpecOf(c.form)
		if diff := cmp.Diff(want.Spec, got); diff != "" || mistakes > 0 {
			t.Errorf("%v: mistakes %v, spec (-command line +form):\n%s", c.form, mistakes, diff)
		}
		given, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		values, err := page.ValuesOf(given)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := page.SpecOf(values); !cmp.Equal(again, got) {
			t.Errorf("the form filled with the spec gives another one: %s", cmp.Diff(got, again))
		}
		read, err := spec.Parse("spec.yaml", []byte(page.SpecText(&got)), "")
		if err != nil || !cmp.Equal(read.Spec, got) {
			t.Errorf("the spec as a file gives another one: %v\n%s", err, page.SpecText(&got))
		}
	}
}
