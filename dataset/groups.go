package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// Groups says what the rows of a dataset belong to, such as persons. A blob has the group
// of each row, as a list of folds does: leave-one-group-out is the split that the blob
// lists. Like names they are not part of the dataset's digest.
type Groups struct {
	Digest string   `json:"digest"` // of EncodeFolds of the rows' groups
	Names  []string `json:"names"`  // by group: sorted, by value where all are numbers
}

// MaxGroups bounds the number of groups, and maxGroupBytes their names, in bytes.
const (
	MaxGroups     = MaxFolds
	maxGroupBytes = 1 << 20
)

// check returns an error if no import makes such groups of so many rows.
func (g *Groups) check(rows int) error {
	digest, err := hex.DecodeString(g.Digest)
	if n := len(g.Names); err != nil || len(digest) != sha256.Size || n < 1 || n > MaxGroups || n > rows {
		return fmt.Errorf("the dataset's description is damaged: %d groups of %d samples are not possible: %w", len(g.Names), rows, ErrFormat)
	}
	bytes := 0
	for _, name := range g.Names {
		if bytes += len(name); name == "" || bytes > maxGroupBytes {
			return fmt.Errorf("the dataset's description is damaged: a group has no name, or the names are too long: %w", ErrFormat)
		}
	}
	return distinct("groups", g.Names)
}

// Check returns an error if b is no list of the groups of so many rows, in which each group has a
// row. It wraps ErrFormat.
func (g *Groups) Check(b []byte, rows int) error {
	of, err := DecodeFolds(b, rows)
	if err != nil {
		return err
	}
	counts := make([]int, len(g.Names))
	for i, group := range of {
		if int(group) >= len(counts) {
			return fmt.Errorf("the list of groups is damaged: sample %d is in group %d, but there are %d groups: %w", i, group, len(counts), ErrFormat)
		}
		counts[group]++
	}
	if i := slices.Index(counts, 0); i >= 0 {
		return fmt.Errorf("the list of groups is damaged: no sample is in the group %q: %w", g.Names[i], ErrFormat)
	}
	return nil
}

// SameGroups returns an error if the rows of two manifests with the same digest belong to
// other groups; other is the manifest that was stored first.
func (m *Manifest) SameGroups(other *Manifest) error {
	a, b := m.Groups, other.Groups
	if (a == nil) == (b == nil) && (a == nil || a.Digest == b.Digest && slices.Equal(a.Names, b.Names)) {
		return nil
	}
	return fmt.Errorf("its samples have %s, the samples of the new dataset have %s", other.Groups, m.Groups)
}

// String counts the groups; nil: none.
func (g *Groups) String() string {
	switch {
	case g == nil:
		return "no groups"
	case len(g.Names) == 1:
		return "1 group"
	}
	return fmt.Sprintf("%d groups", len(g.Names))
}

// groupSet collects the groups in the first pass over a source.
type groupSet struct {
	seen  *identities
	bytes int
}

func newGroupSet(file string) *groupSet {
	return &groupSet{seen: newIdentities(file, "group")}
}

// add notes the group of a row.
func (g *groupSet) add(r *Row) error {
	if !g.seen.add(r.Group, r) {
		return nil
	}
	if g.bytes += len(r.Group); len(g.seen.texts) > MaxGroups || g.bytes > maxGroupBytes {
		return rowErrorf(g.seen.file, r.Number, "there are more than %d groups, or their names have more than %d bytes together", MaxGroups, maxGroupBytes)
	}
	return nil
}

// sorted returns the groups without their rows (nil: there are none), and what is to be said of them.
func (g *groupSet) sorted() (all *Groups, notes []string, err error) {
	if len(g.seen.texts) == 0 {
		return nil, nil, nil
	}
	found, merged, err := g.seen.resolve()
	if err != nil {
		return nil, nil, err
	}
	all = &Groups{}
	for _, f := range found {
		all.Names = append(all.Names, f.name)
	}
	if merged != nil {
		notes = append(notes, mergedNote("group", merged))
	}
	return all, notes, nil
}
