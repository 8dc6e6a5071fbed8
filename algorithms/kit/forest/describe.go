package forest

import (
	"cmp"
	"fmt"
	"slices"
)

// describedFeatures is how many features Describe lists.
const describedFeatures = 10

// Describe implements algorithms.Model.
func (m *Ensemble) Describe() [][2]string {
	pairs := append(m.DescribeTrees(), [2]string{"features used", fmt.Sprintf("%d of %d", m.walker().used, m.features)})
	for i, f := range m.Importance() {
		if i == describedFeatures {
			break
		}
		pairs = append(pairs, [2]string{fmt.Sprintf("feature %d", f.Feature),
			fmt.Sprintf("%d splits, total gain %.4g", f.Splits, f.Gain)})
	}
	return pairs
}

// Importance says how much the forest uses a feature.
type Importance struct {
	Feature int
	Splits  int
	Gain    float64 // nats for each sample of a tree, summed over its splits and trees
}

// Importance lists the features that split a node, the greatest total gain first.
// A split's gain is weighted by the share of the tree's samples that reached it.
func (m *Ensemble) Importance() []Importance {
	w := m.walker()
	list := make([]Importance, w.used)
	for _, tree := range m.trees {
		for i, f := range tree.feature {
			if f != leafMark {
				x := &list[w.compact[f]]
				x.Feature = int(f)
				x.Splits++
				x.Gain += tree.gain[i] * float64(tree.samples[i]) / float64(max(1, tree.samples[0]))
			}
		}
	}
	slices.SortFunc(list, func(a, b Importance) int {
		return cmp.Or(cmp.Compare(b.Gain, a.Gain), cmp.Compare(a.Feature, b.Feature))
	})
	return list
}

// numberSummary holds the least, mean and greatest of some numbers.
type numberSummary struct {
	n, sum, least, most float64
}

func (s *numberSummary) add(x float64) {
	if s.n == 0 || x < s.least {
		s.least = x
	}
	if s.n == 0 || x > s.most {
		s.most = x
	}
	s.n++
	s.sum += x
}

func (s *numberSummary) text(format string) string {
	return fmt.Sprintf("mean "+format+" (%.0f to %.0f)", s.sum/max(1, s.n), s.least, s.most)
}

// forestSummary is what Describe prints about the trees.
type forestSummary struct {
	depth, leaves numberSummary // over trees
	samples       numberSummary // over leaves
	evaluations   float64
}

// DescribeTrees returns the pairs of Describe that do not speak of features.
func (m *Ensemble) DescribeTrees() [][2]string {
	s := m.summary()
	return [][2]string{
		{"trees", fmt.Sprint(len(m.trees))},
		{"depth", s.depth.text("%.1f")},
		{"leaves", s.leaves.text("%.1f") + fmt.Sprintf(", %.0f in all", s.leaves.sum)},
		{"samples per leaf", s.samples.text("%.1f")},
		{"gain evaluations", fmt.Sprintf("%.0f", s.evaluations)},
	}
}

func (m *Ensemble) summary() *forestSummary {
	s := new(forestSummary)
	for _, tree := range m.trees {
		s.leaves.add(float64(tree.Leaves()))
		s.evaluations += float64(tree.Evaluations)
		deepest := 0
		for i, d := range tree.depths() {
			if tree.feature[i] == leafMark {
				deepest = max(deepest, d)
				s.samples.add(float64(tree.samples[i]))
			}
		}
		s.depth.add(float64(deepest))
	}
	return s
}

// Trees returns the number of trees, for TreeText.
func (m *Ensemble) Trees() int { return len(m.trees) }

// TreeText draws one tree, counted from 0, with a line for each node: the test of a
// split node, its samples and gain, its left child and all below it, then its
// right child. Names may be empty; then numbers stand for them.
func (m *Ensemble) TreeText(n int, featureNames, labelNames []string) (string, error) {
	if n < 0 || n >= len(m.trees) {
		return "", fmt.Errorf("tree %d does not exist; the forest has trees 0 to %d", n, len(m.trees)-1)
	}
	w := treeWriter{tree: m.trees[n], features: featureNames, labels: labelNames}
	if w.tree.Labels < m.labels {
		w.labels = []string{labelName(labelNames, n%m.labels)}
	}
	w.writeNode(0, "", "")
	return w.b.String(), nil
}
