package experiment

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/yamltree"
)

// Kinship says how a spec goes with the results that a layout describes.
type Kinship int

const (
	SameSpec   Kinship = iota // the results are of this spec, or of another with the same meaning
	EditedSpec                // they are of an earlier text of this spec
	OtherSpec                 // they are of another spec of the same name
)

// SpecOf returns the spec that the results of a layout are of.
func SpecOf(l *Layout) (*Spec, error) {
	name := ""
	if l.Table.Spec != nil {
		name = l.Table.Spec.File
	}
	return Parse(context.Background(), name, []byte(l.Text)) // Parse accepted the text before, so the call is short
}

// Compare says how the spec goes with the results of a layout, and lists what differs. A spec in a file of
// another name is another one, as is a spec that has no dataset or no algorithm of the layout.
func (s *Spec) Compare(of *Layout) (Kinship, []string) {
	kept, own := of.Table.Spec, s.identity()
	if kept == nil || own == nil || kept.Digest == own.Digest {
		return SameSpec, nil
	}
	before, err := SpecOf(of)
	if err != nil {
		return EditedSpec, []string{"the spec that the results keep: this version of Coppice cannot read it"}
	}
	changes := s.changesFrom(before)
	switch {
	case len(changes) == 0:
		return SameSpec, nil
	case kept.File != own.File,
		!common(s.Datasets, before.Datasets, func(d Dataset) string { return d.Name }),
		!common(s.Methods, before.Methods, func(r Method) string { return r.trained }):
		return OtherSpec, changes
	}
	return EditedSpec, changes
}

// common reports whether two lists have an item of one name.
func common[T any](a, b []T, name func(T) string) bool {
	names := make(map[string]bool)
	for _, x := range a {
		names[name(x)] = true
	}
	return slices.ContainsFunc(b, func(x T) bool { return names[name(x)] })
}

// changesFrom lists what a spec says otherwise than an earlier one: names of datasets and methods, and keys.
func (s *Spec) changesFrom(before *Spec) (list []string) {
	list = append(list, changed("dataset", s.Datasets, before.Datasets, func(d Dataset) string { return d.Name }, func(d Dataset) any {
		d.At, d.Folds.At = yamltree.Place{}, yamltree.Place{}
		return d
	})...)
	list = append(list, changed("method", s.Methods, before.Methods, func(r Method) string { return r.Name }, func(r Method) any {
		r.At, r.Budget = yamltree.Place{}, nil // a budget decides which runs are run, and none of their results
		return r
	})...)
	published := func(of *Spec) (all []result.Published) {
		for _, p := range of.Published {
			all = append(all, p.Published)
		}
		return all
	}
	for _, key := range []struct {
		name string
		same bool
	}{
		{"seed", s.Seed == before.Seed},
		{"measures", slices.Equal(s.Measures, before.Measures)},
		{"clip", s.Clip == before.Clip},
		{"missing", s.SkipMissing == before.SkipMissing},
		{"published", slices.Equal(published(s), published(before))},
		{"record", s.Record.Curve == before.Record.Curve && s.Record.Predictions == before.Record.Predictions},
	} {
		if !key.same {
			list = append(list, "the key "+key.name)
		}
	}
	return list
}

// mostChanges bounds the names of items that a change lists.
const mostChanges = 5

// changed says which items are new, are missing or differ.
func changed[T any](what string, now, before []T, name func(T) string, plain func(T) any) (list []string) {
	old := make(map[string]T)
	for _, x := range before {
		old[name(x)] = x
	}
	var added, removed, other []string
	for _, x := range now {
		was, ok := old[name(x)]
		switch {
		case !ok:
			added = append(added, name(x))
		case !reflect.DeepEqual(plain(x), plain(was)):
			other = append(other, name(x))
		}
		delete(old, name(x))
	}
	for _, x := range before {
		if _, left := old[name(x)]; left {
			removed = append(removed, name(x))
		}
	}
	for _, c := range []struct {
		how   string
		names []string
	}{{"that have no results", added}, {"that are only in the results", removed}, {"with other settings", other}} {
		if n := len(c.names); n > mostChanges {
			c.names = append(c.names[:mostChanges:mostChanges], fmt.Sprintf("%d more", n-mostChanges))
		}
		if len(c.names) > 0 {
			list = append(list, fmt.Sprintf("%ss %s: %s", what, c.how, strings.Join(c.names, ", ")))
		}
	}
	return list
}
