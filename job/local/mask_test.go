package local

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/job/enhance"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestMaskHides: what a mask hides of training and validation samples changes neither the model nor what it is compared
// with. Other labels of test samples change the measures alone.
func TestMaskHides(t *testing.T) {
	d := artificial(t, 200)
	n := d.Manifest.Labels
	for algorithm, steps := range map[string]string{"sa-bfgs": "iterations", "incomldl": "iterations",
		"winldl": "iterations", "ldlboost": "rounds"} {
		j := resolve(t, d, protocol.Spec{Algorithm: algorithm, TestFraction: 0.3, Mask: "0.5,unlabelled:0.1",
			Set: map[string]string{steps: "20"}})
		want := run(t, d, j, Options{})
		roles, err := j.Split.Assign(d.Manifest.Rows, nil)
		if err != nil {
			t.Fatal(err)
		}
		hidden, tested := enhance.LabelsOf(enhance.AllOf(d.Manifest, d.Shards)), []float32(nil)
		tested = append(tested, hidden...)
		changed := 0
		for row, role := range roles {
			label := hidden[row*n:][:n]
			if role == dataset.Test {
				copy(tested[row*n:], []float32{label[1], label[2], label[0]})
				continue
			}
			left := append([]float32{}, label...)
			if j.Split.Mask.Hide(left, j.Split.Seed, row) < 2 {
				continue
			}
			var at []int
			for c, x := range left {
				if x != x {
					at = append(at, c)
				}
			}
			label[at[0]], label[at[1]] = label[at[1]], label[at[0]]
			changed++
		}
		if changed < 40 {
			t.Fatalf("only %d samples have hidden degrees", changed)
		}
		if got := run(t, relabelled(d, hidden), j, Options{}); got.ModelDigest != want.ModelDigest ||
			got.Measures != want.Measures || got.MeanPredictor != want.MeanPredictor {
			t.Errorf("%s knows hidden degrees", algorithm)
		}
		if got := run(t, relabelled(d, tested), j, Options{}); got.ModelDigest != want.ModelDigest ||
			got.Measures == want.Measures {
			t.Errorf("%s does not have the true labels of test samples, or the model knows them", algorithm)
		}
	}
}

// TestUnseenLabel: a label that is missing in all training samples is refused by name.
func TestUnseenLabel(t *testing.T) {
	d := artificial(t, 60)
	j := resolve(t, d, protocol.Spec{Algorithm: "sa-bfgs", TestFraction: 0.3, Set: map[string]string{"iterations": "20"}})
	roles, err := j.Split.Assign(d.Manifest.Rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := *d.Manifest
	m.LabelNames, m.LabelType.Incomplete = []string{"joy", "fear", "anger"}, true
	labels := enhance.LabelsOf(enhance.AllOf(d.Manifest, d.Shards))
	for row, role := range roles {
		if role != dataset.Test {
			labels[row*3], labels[row*3+1] = dataset.MissingDegree, dataset.MissingDegree
		}
	}
	gaps := relabelled(d, labels)
	gaps.Manifest = &m
	for _, r := range gaps.Shards {
		r.Incomplete = true
	}
	for algorithm, steps := range map[string]string{"sa-bfgs": "iterations", "incomldl": "iterations",
		"winldl": "iterations", "ldlboost": "rounds"} {
		j := resolve(t, gaps, protocol.Spec{Algorithm: algorithm, TestFraction: 0.3, Set: map[string]string{steps: "20"}})
		_, err := Run(t.Context(), j, gaps, Options{})
		if err == nil || !strings.Contains(err.Error(), "the label joy is missing in every training sample") {
			t.Errorf("%s: %v", algorithm, err)
		}
	}
}

// TestMaskOfOtherLabels: a mask of labels that are no distributions is refused as such, whatever the algorithm.
func TestMaskOfOtherLabels(t *testing.T) {
	mask := dataset.Mask{Rate: 0.5}
	for want, labels := range map[string]dataset.LabelType{
		"are targets in the bounds": {Bounds: new(dataset.Bounds)}, "are classes": {Classes: true},
		"are already missing": {Incomplete: true},
	} {
		m := &dataset.Manifest{Rows: 9, Features: 3, Labels: 4, LabelType: labels}
		for _, algorithm := range []string{"sa-bfgs", "gld-bfgs"} {
			if err := pipeline.CheckLearns(algorithm, m, mask); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: %v", want, algorithm, err)
			}
		}
	}
}
