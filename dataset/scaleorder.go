package dataset

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// withScale returns src with its labels in the order of the numbers in their names, if these are the numbers of the
// scale that o asks for. A note says that the order changed, or which numbers labels with other names are. Names that
// are other whole numbers are refused if they contradict the scale or do not ascend. Labels of a file for a model are
// matched with those of the model instead.
func withScale(src Source, o *OpenOptions) (Source, error) {
	info, l := src.Info(), &o.Labels
	if l.Kind == Age || !l.Ordered || o.schema != nil || info.Labels != l.High-l.Low+1 {
		return src, nil
	}
	if len(info.LabelNames) == 0 {
		if info.defaultLabels && l.Low != 0 {
			return withNote(src, fmt.Sprintf(`labels "0" to "%d" have the numbers %d to %d of --range, in this order; --range 0:%[1]d uses the numbers in their names`, info.Labels-1, l.Low, l.High)), nil
		}
		return src, nil
	}
	numbers, plain := namedNumbers(info.LabelNames)
	order, low, consecutive := numberOrder(numbers)
	switch {
	case consecutive && low == l.Low && slices.IsSorted(order):
		return src, nil
	case consecutive && low == l.Low:
		return withLabelOrder(src, order, fmt.Sprintf("labels are sorted by the numbers in their names, %d to %d; the file has another order", l.Low, l.High)), nil
	case consecutive && plain:
		is := fmt.Sprintf("%d:%d", low, low+info.Labels-1)
		return nil, pathError(info.File, &kindError{&WaysError{
			fmt.Sprintf("labels are called %d to %d, but --range %d:%d gives them other numbers: --range %s uses the numbers in the names; to use --range %[3]d:%d, rename the labels",
				low, low+info.Labels-1, l.Low, l.High, is),
			[]Way{oneWay("--range", is, "labels are the numbers %s", is)},
		}, ErrAmbiguous})
	case plain && !slices.IsSorted(order) && !info.labelsListed && len(info.labelFlags) == info.Labels:
		stand, ascend := listFlag("--label-columns", info.labelFlags...), listFlag("--label-columns", inOrder(info.labelFlags, order)...)
		return nil, pathError(info.File, &WaysError{
			fmt.Sprintf("--range %[2]d:%[3]d needs ordered labels, but the labels (%[1]s) do not ascend: %[4]s reads them in ascending order, %[5]s in the order of the file",
				listSome(info.LabelNames), l.Low, l.High, Option{"label-columns", ascend.Value}, Option{"label-columns", stand.Value}),
			[]Way{{"labels in ascending order", []Flag{ascend}}, {"labels in the order of the file", []Flag{stand}}},
		})
	}
	return withNote(src, fmt.Sprintf("the labels, %s, have the numbers %d to %d of --range, in this order; their names are other numbers", listSome(info.LabelNames), l.Low, l.High)), nil
}

// numberInName matches a name with one number in it.
var numberInName = regexp.MustCompile(`^(\D*)(\d{1,9})\D*$`)

// namedNumbers reads a whole number from each name; nil: one has none, or what comes before it differs. plain: the names
// are nothing but numbers.
func namedNumbers(names []string) (numbers []int, plain bool) {
	for _, name := range names {
		n, err := wholeNumber(name)
		if err != nil {
			break
		}
		numbers = append(numbers, n)
	}
	if len(numbers) == len(names) {
		return numbers, true
	}
	numbers = nil
	before := ""
	for i, name := range names {
		m := numberInName.FindStringSubmatch(strings.TrimSpace(name))
		if m == nil || i > 0 && m[1] != before {
			return nil, false
		}
		before = m[1]
		n, _ := strconv.Atoi(m[2]) // of nine digits at most
		numbers = append(numbers, n)
	}
	return numbers, false
}

// numberOrder returns the places of numbers in ascending order, the least one, and whether they are consecutive.
func numberOrder(numbers []int) (order []int, low int, consecutive bool) {
	if len(numbers) == 0 {
		return nil, 0, false
	}
	for i := range numbers {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return numbers[a] - numbers[b] })
	low, consecutive = numbers[order[0]], true
	for k, i := range order {
		consecutive = consecutive && numbers[i] == low+k
	}
	return order, low, consecutive
}

// inOrder returns the items of list at the places of order; an empty list stays so.
func inOrder[T any](list []T, order []int) (all []T) {
	if len(list) != len(order) {
		return list
	}
	for _, i := range order {
		all = append(all, list[i])
	}
	return all
}

// orderedLabels is a Source whose labels are those of another Source in another order.
type orderedLabels struct {
	Source
	info  Info
	order []int
}

// withLabelOrder returns src with label order[i] as label i, and a note.
func withLabelOrder(src Source, order []int, note string) Source {
	info := src.Info()
	info.LabelNames, info.labelFlags = inOrder(info.LabelNames, order), inOrder(info.labelFlags, order)
	info.LabelColumns.Names, info.LabelColumns.Positions = inOrder(info.LabelColumns.Names, order), inOrder(info.LabelColumns.Positions, order)
	info.Notes = append(slices.Clone(info.Notes), note)
	return &orderedLabels{src, info, order}
}

// Info describes the rows with their labels in the new order.
func (s *orderedLabels) Info() Info { return s.info }

// Scan implements Source.
func (s *orderedLabels) Scan(f func(*Row) error) error {
	labels, row := make([]float64, len(s.order)), Row{}
	return s.Source.Scan(func(r *Row) error {
		if len(r.Labels) != len(s.order) {
			return f(r)
		}
		row = *r
		for k, i := range s.order {
			labels[k] = r.Labels[i]
		}
		row.Labels = labels
		return f(&row)
	})
}
