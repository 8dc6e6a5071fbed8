package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/protocol"
)

// element is what a list knows of one of its elements.
type element struct {
	name   string
	chosen bool           // true if the query asks for it
	keys   map[string]any // the values to sort by: float64 or string
}

// readList reads the query of a list. what takes it, for errors.
func readList(r *http.Request, what string, params []protocol.Param, q *protocol.ListQuery) error {
	if err := protocol.ReadQuery(r.URL.Query(), what, params); err != nil {
		return bad{err}
	}
	if q.Until != 0 && q.Until < q.Since {
		return fmt.Errorf("%w: until: %d is before since, %d", errBad, q.Until, q.Since)
	}
	return nil
}

// choosePart returns the elements of a list that a query asks for, in its order, and how many there are without its
// bounds Limit and After. usual is the order of the list; elements that are equal in an order stay in the list's.
func choosePart[T any](all []T, q *protocol.ListQuery, usual string,
	of func(*T) element) (chosen []T, total int, next string, err error) {
	type place struct {
		at int
		element
	}
	places := make([]place, len(all))
	for i := range all {
		places[i] = place{i, of(&all[i])}
	}
	key, descending := q.Order(usual)
	slices.SortStableFunc(places, func(a, b place) int {
		order := 0
		switch v := a.keys[key].(type) {
		case float64:
			order = cmp.Compare(v, b.keys[key].(float64))
		case string:
			order = cmp.Compare(v, b.keys[key].(string))
		}
		if descending {
			order = -order
		}
		return order
	})
	first := 0
	if q.After != "" {
		for i := range places {
			if places[i].name == q.After {
				first = i + 1
			}
		}
		if first == 0 {
			return nil, 0, "", fmt.Errorf("after: %.80q: %w; list from the first element on", q.After, state.ErrNotFound)
		}
	}
	chosen = []T{}
	last := ""
	for i := range places {
		p := &places[i]
		if !p.chosen {
			continue
		}
		total++
		switch {
		case i < first:
		case q.Limit == 0 || len(chosen) < q.Limit:
			chosen, last = append(chosen, all[p.at]), p.name
		default:
			next = last
		}
	}
	return chosen, total, next, nil
}

// partOf answers a request for a list whose elements have no object around them: the header Link says where the list
// goes on.
func partOf[T any](r *http.Request, all []T, q *protocol.ListQuery, usual string, of func(*T) element) (part, error) {
	chosen, _, next, err := choosePart(all, q, usual, of)
	if err != nil {
		return part{}, err
	}
	answer := part{list: chosen}
	if next != "" {
		answer.next = r.URL.Query()
		answer.next.Set("after", next)
	}
	return answer, nil
}
