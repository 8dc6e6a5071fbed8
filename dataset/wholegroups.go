package dataset

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
)

// Draw returns the rows of a list that measure a training on the others, as the permutation (key, pass) draws them: n
// rows, or half of the list if n is more. If groups, the group of each row of the dataset, is not nil, Draw returns
// about n rows: whole groups of at most half of the list or, if there are none so small, the smallest. It returns none
// of a single group.
func Draw(key num.Key, pass uint64, rows []int, groups []uint16, n int) (drawn []int) {
	half := len(rows) / 2
	n = min(n, half)
	if groups == nil {
		p := num.NewPermutation(key, pass, 0, uint64(len(rows)))
		for i := range n {
			drawn = append(drawn, rows[p.At(uint64(i))])
		}
		return drawn
	}
	parts := byGroup(key, pass, rows, groups)
	for _, part := range parts {
		if len(part) < 2*(n-len(drawn)) && len(drawn)+len(part) <= half { // closer to n than without it
			drawn = append(drawn, part...)
		}
	}
	if n > 0 && drawn == nil && len(parts) > 1 {
		return slices.MinFunc(parts, func(a, b []int) int { return cmp.Compare(len(a), len(b)) })
	}
	return drawn
}

// byGroup divides rows by group. The permutation (key, pass) orders the groups.
func byGroup(key num.Key, pass uint64, rows []int, groups []uint16) [][]int {
	if len(rows) == 0 {
		return nil
	}
	all := make([][]int, int(slices.Max(groups))+1)
	for _, row := range rows {
		all[groups[row]] = append(all[groups[row]], row)
	}
	all = slices.DeleteFunc(all, func(part []int) bool { return part == nil })
	p := num.NewPermutation(key, pass, 0, uint64(len(all)))
	ordered := make([][]int, len(all))
	for i := range ordered {
		ordered[i] = all[p.At(uint64(i))]
	}
	return ordered
}

// innerGroups returns the rows of one of so many inner folds of whole groups: the largest groups first, each in the
// fold with the fewest rows. If there are fewer groups than folds, several folds have the same group.
func innerGroups(key num.Key, rows []int, groups []uint16, fold, folds int) ([]int, error) {
	parts := byGroup(key, 0, rows, groups)
	if len(parts) < 2 {
		return nil, fmt.Errorf("all samples that are left to train on are in one group, so inner folds cannot keep groups "+
			"whole: want two groups, got %d", len(parts))
	}
	slices.SortStableFunc(parts, func(a, b []int) int { return cmp.Compare(len(b), len(a)) })
	divided := make([][]int, min(folds, len(parts)))
	for _, part := range parts {
		least := 0
		for i := range divided {
			if len(divided[i]) < len(divided[least]) {
				least = i
			}
		}
		divided[least] = append(divided[least], part...)
	}
	return divided[fold%len(divided)], nil
}
