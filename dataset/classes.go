package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/units"
)

// useClasses makes one-hot labels of Row.text. order is that of the classes if classes is empty and all that are found are
// in it. If it has the names of classes that are numbers in the file, these are the classes. The file's own names of classes
// are theirs if the numbers count them.
func (d *derivedLabels) useClasses(classes, order []string) error {
	called, trained := trimmed(d.info.classNames), classes
	named := len(called) > 0 && !isNumbers(called) && (len(trained) == 0 || !isNumbers(trained))
	if len(classes) == 0 || named || len(order) == len(classes) && !isNumbers(order) {
		found, notes, err := distinctClasses(d.Source)
		if err != nil {
			return err
		}
		if base, ok := countedFrom(found, called); named && ok {
			called, found = numbered(called, found, base, len(trained) > 0)
			notes = append(notes, fmt.Sprintf("the classes are counted from %d and have the label names of the file: %s", base, listSome(called)))
		} else {
			called, notes = nil, append(notes, namesNote(called, found)...)
			if len(trained) > 0 && !(isNumbers(found) && len(found) == len(order)) {
				found, notes = classes, nil
			}
		}
		if ordered, _ := orderOf(found, order); ordered != nil && called == nil {
			found = ordered
		}
		classes, d.info.Notes = found, append(d.info.Notes[:len(d.info.Notes):len(d.info.Notes)], notes...)
	} else {
		called = nil
	}
	known := newIdentityIndex(d.info.File, "class", classes)
	if len(known.names) != len(classes) {
		return fmt.Errorf("%sthe list of classes has a class twice", prefix(d.info.File))
	}
	if d.info.Labels, d.info.LabelNames = len(classes), classes; called != nil {
		d.info.LabelNames = called
	}
	file, of := d.info.File, d.Source.Info()
	d.derive = func(dst []float64, r *Row) error {
		if isMissing(r.text) {
			return missingClass(&of, r)
		}
		i, ok, err := known.find(strings.TrimSpace(r.text), r)
		if err != nil {
			return err
		}
		if !ok {
			return rowErrorf(file, r.Number, "the class %.100q is unknown; want one of %s", r.text, listSome(classes))
		}
		clear(dst)
		dst[i] = 1
		r.raw = append(r.raw[:0], float64(i))
		return nil
	}
	return nil
}

// countedFrom returns the number of the first name if classes are whole numbers that count names from 0 or from 1; ok is false if
// they are not, or if both fit.
func countedFrom(classes, names []string) (base int, ok bool) {
	low, high := math.MaxInt, -1
	for _, class := range classes {
		n, err := strconv.Atoi(class)
		if err != nil || n < 0 || strconv.Itoa(n) != class {
			return 0, false
		}
		low, high = min(low, n), max(high, n)
	}
	switch n := len(names); {
	case low == 0 && high < n:
		return 0, true
	case low > 0 && high == n:
		return 1, true
	}
	return 0, false
}

// numbered returns the names of the classes found, which count names from base on, and the classes; all: of every name.
func numbered(names, found []string, base int, all bool) (called, classes []string) {
	for i, name := range names {
		if class := strconv.Itoa(base + i); all || slices.Contains(found, class) {
			called, classes = append(called, name), append(classes, class)
		}
	}
	return called, classes
}

// namesNote says that names of labels in the file are not used, unless they are the classes.
func namesNote(names, found []string) []string {
	other := func(class string) bool { return !slices.Contains(names, class) }
	if len(names) == 0 || !slices.ContainsFunc(found, other) {
		return nil
	}
	return []string{fmt.Sprintf("the label names in the file are not used: they are %s, but the classes are %s", listSome(names), listSome(found))}
}

// distinctClasses scans src for its classes, sorted; the notes say what they are.
func distinctClasses(src Source) (classes, notes []string, err error) {
	info := src.Info()
	seen := newIdentities(info.File, "class")
	first, rows := "", 0
	err = src.Scan(func(r *Row) error {
		if r.LeftOut {
			return nil
		}
		if isMissing(r.text) {
			return missingClass(&info, r)
		}
		class := strings.TrimSpace(r.text)
		if rows++; !seen.add(class, r) {
			return nil
		}
		if err := checkName(class); err != nil {
			return rowErrorf(info.File, r.Number, "the class of the sample %v", err)
		}
		if rows == 1 {
			first = strings.Clone(class)
		}
		if len(seen.texts) > MaxLabels {
			return rowErrorf(info.File, r.Number, "the file has more than %d classes", MaxLabels)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if info.unsure && rows >= suspectRows && seen.texts[first].rows == 1 {
		return nil, nil, pathError(info.File, headerError(fmt.Sprintf("the first line has numbers and the class %.100q, which occurs in no other row", first)))
	}
	found, merged, err := seen.resolve()
	if err != nil {
		return nil, nil, err
	}
	for _, c := range found {
		classes = append(classes, c.name)
	}
	if len(found) > 0 {
		notes = append(notes, classesNote(found))
	}
	if merged != nil {
		notes = append(notes, mergedNote("class", merged))
	}
	return classes, notes, nil
}

// maxCounted is how many classes a note lists.
const maxCounted = 20

// classesNote lists the classes with their numbers of rows.
func classesNote(found []identityCount) string {
	var list []string
	for _, c := range found[:min(maxCounted, len(found))] {
		list = append(list, fmt.Sprintf("%.40s (%s)", c.name, counted(c.rows, "sample")))
	}
	if n := len(found) - len(list); n > 0 {
		list = append(list, units.Count(n)+" more")
	}
	if len(found) == 1 {
		return "1 class: " + list[0]
	}
	return fmt.Sprintf("%s classes: %s", units.Count(len(found)), strings.Join(list, ", "))
}

// mergedNote says that equal numbers are one class, or one group.
func mergedNote(what string, merged []string) string {
	return fmt.Sprintf("equal numbers are read as one %s, such as %.40q and %.40q", what, merged[0], merged[1])
}

// missingClass returns the error for a row without a class.
func missingClass(info *Info, r *Row) error {
	reason := "the class is empty"
	if text := strings.TrimSpace(r.text); text != "" {
		reason = fmt.Sprintf("%.40q is a missing value", text)
	}
	return &RowError{
		File: info.File, Row: r.Number, Column: 0, Kind: "label", Name: nameAt(info.LabelNames, 0), Reason: reason + dropHint,
	}
}
