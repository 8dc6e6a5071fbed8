package protocol

import (
	"cmp"
	"errors"
	"slices"
)

// Element is what a list knows of one of its elements.
type Element struct {
	Name   string
	Chosen bool           // true if the query asks for it
	Keys   map[string]any // the values to sort by: float64 or string
}

// ErrNoElement is the error of Part if no element has the name ListQuery.After.
var ErrNoElement = errors.New("the list has no such element")

// Part returns the elements of a list that a query asks for, in its order, and how many there are without its bounds
// Limit and After. usual is the order of the list; elements that are equal in an order stay in the list's. next is
// After of the next list, or empty.
func Part[T any](all []T, q *ListQuery, usual string, of func(*T) Element) (chosen []T, total int, next string,
	err error) {
	type place struct {
		at int
		Element
	}
	places := make([]place, len(all))
	for i := range all {
		places[i] = place{i, of(&all[i])}
	}
	key, descending := q.Order(usual)
	slices.SortStableFunc(places, func(a, b place) int {
		order := 0
		switch v := a.Keys[key].(type) {
		case float64:
			order = cmp.Compare(v, b.Keys[key].(float64))
		case string:
			order = cmp.Compare(v, b.Keys[key].(string))
		}
		if descending {
			order = -order
		}
		return order
	})
	first := 0
	if q.After != "" {
		for i := range places {
			if places[i].Name == q.After {
				first = i + 1
			}
		}
		if first == 0 {
			return nil, 0, "", ErrNoElement
		}
	}
	chosen = []T{}
	last := ""
	for i := range places {
		p := &places[i]
		if !p.Chosen {
			continue
		}
		total++
		switch {
		case i < first:
		case q.Limit == 0 || len(chosen) < q.Limit:
			chosen, last = append(chosen, all[p.at]), p.Name
		default:
			next = last
		}
	}
	return chosen, total, next, nil
}
