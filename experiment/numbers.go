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
	texts, tested map[string]int32 // of what runs have in common, and of digests of tested samples
	blocks        map[runBlock]*[inBlock]int32
	different     int32
}

// runBlock tells runs apart as their keys do, but for what they test: up to inBlock runs share a look-up. A block has a
// number of each, from 1 on; 0: it has none.
type runBlock struct {
	text, place int32 // place: of what is tested, divided by inBlock
	overlap     bool  // true if the place is of tested samples, because the splits of the job overlap; otherwise of a fold
	seed, split uint64
}

const inBlock = 16

// NewNumbers returns numbers of no run.
func NewNumbers() *Numbers {
	return &Numbers{texts: make(map[string]int32), tested: make(map[string]int32)}
}

// Different returns the number of different runs.
func (n *Numbers) Different() int { return int(n.different) }

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
	// By row, for the runs of fold 0 and for others: their text, from 1 on, or 0 if it is not known, and the last block.
	texts := make([][2]int32, len(j.Cells.Rows))
	last := make([][2]struct {
		id    runBlock
		block *[inBlock]int32
	}, len(j.Cells.Rows))
	folds := make([]int32, len(tested))
	for i := range tested {
		folds[i] = intern(n.tested, []byte(tested[i]))
	}
	if n.blocks == nil {
		n.blocks = make(map[runBlock]*[inBlock]int32, cap(list)/4)
	}
	for unit, at := range j.Cells.All() {
		fold := j.Cells.Index(at) % j.Split.Folds
		place := int32(fold)
		if j.Split.Overlap {
			place = folds[fold]
		}
		id := runBlock{place: place / inBlock, overlap: j.Split.Overlap, seed: j.Seed + uint64(at.Repeat),
			split: j.Split.Seed + uint64(at.Repeat)}
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
			if id.text = 1 + intern(n.texts, bytes.Join(parts, []byte{0})); common {
				*text = id.text
			}
		}
		known := &last[at.Row][min(fold, 1)]
		if known.block == nil || known.id != id {
			if known.id, known.block = id, n.blocks[id]; known.block == nil {
				known.block = new([inBlock]int32)
				n.blocks[id] = known.block
			}
		}
		number := &known.block[place%inBlock]
		if *number == 0 {
			n.different++
			*number = n.different
		}
		list = append(list, *number-1)
	}
	return list, nil
}

// intern returns the number of a text.
func intern(all map[string]int32, text []byte) int32 {
	number, ok := all[string(text)]
	if !ok {
		number = int32(len(all))
		all[string(text)] = number
	}
	return number
}
