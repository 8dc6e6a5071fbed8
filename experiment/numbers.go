package experiment

import (
	"bytes"
	"fmt"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// Numbers numbers the runs of jobs: runs have the same number if they have the same key. A number takes a hundredth of
// the time of a key, because it needs no sum of what the runs of a method have in common.
type Numbers struct {
	texts map[string]int32 // of what runs have in common, and of digests of tested samples
	runs  map[runIdentity]int32
}

// runIdentity tells runs apart as their keys do.
type runIdentity struct {
	text, tested, fold int32 // tested: only if the splits of the job overlap; fold: only if they do not
	seed, split        uint64
}

// NewNumbers returns numbers of no run.
func NewNumbers() *Numbers {
	return &Numbers{texts: make(map[string]int32), runs: make(map[runIdentity]int32)}
}

// Different returns the number of different runs.
func (n *Numbers) Different() int { return len(n.runs) }

// Add numbers the runs of a job and returns the numbers, by unit. tested is as in a Plan.
func (n *Numbers) Add(j *round.Job, tested []string) ([]int32, error) {
	if j.Cells == nil || j.Split.Overlap && len(tested) != j.Split.Folds {
		return nil, fmt.Errorf("%w: the job has no runs, or test samples for %d of %d folds", ErrFolder, len(tested),
			j.Split.Folds)
	}
	if err := j.Cells.Check(j.Split.Folds, j.Split.Overlap); err != nil {
		return nil, err
	}
	list := make([]int32, 0, j.Cells.Count())
	texts := make([][2]int32, len(j.Cells.Rows)) // of the runs of fold 0 and of others, from 1 on; 0: not known
	folds := make([]int32, len(tested))
	for i := range tested {
		folds[i] = n.intern([]byte(tested[i]))
	}
	for unit, at := range j.Cells.All() {
		fold := j.Cells.Index(at) % j.Split.Folds
		id := runIdentity{seed: j.Seed + uint64(at.Repeat), split: j.Split.Seed + uint64(at.Repeat)}
		if j.Split.Overlap {
			id.tested = folds[fold]
		} else {
			id.fold = int32(fold)
		}
		text := &texts[at.Row][min(fold, 1)]
		if id.text = *text; id.text == 0 {
			child, err := pipeline.Cell(j, unit)
			if err != nil {
				return nil, err
			}
			parts := newMarkedText(child, &j.Cells.Labels)
			common := len(parts) > 1 && len(j.Cells.Rows[at.Row].External) == 0
			if len(parts) == 1 { // it has a mark in another place
				parts = markedText{keyText(child, "", &j.Cells.Labels)}
			}
			if id.text = 1 + n.intern(bytes.Join(parts, []byte{0})); common {
				*text = id.text
			}
		}
		number, ok := n.runs[id]
		if !ok {
			number = int32(len(n.runs))
			n.runs[id] = number
		}
		list = append(list, number)
	}
	return list, nil
}

// intern returns the number of a text.
func (n *Numbers) intern(text []byte) int32 {
	number, ok := n.texts[string(text)]
	if !ok {
		number = int32(len(n.texts))
		n.texts[string(text)] = number
	}
	return number
}
