package dataset

import (
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/internal/units"
)

// useClasses makes one-hot labels of Row.text. order is that of the classes if classes is empty and all that are found are
// in it. If it has the names of classes that are numbers in the file, these are the classes.
func (d *derivedLabels) useClasses(classes, order []string) error {
	if len(classes) == 0 || len(order) == len(classes) && !isNumbers(order) {
		found, notes, err := distinctClasses(d.Source)
		if err != nil {
			return err
		}
		if len(classes) > 0 && !(isNumbers(found) && len(found) == len(order)) {
			found, notes = classes, nil
		}
		if ordered, _ := orderOf(found, order); ordered != nil {
			found = ordered
		}
		classes, d.info.Notes = found, append(d.info.Notes[:len(d.info.Notes):len(d.info.Notes)], notes...)
	}
	known := newIdentityIndex(d.info.File, "class", classes)
	if len(known.names) != len(classes) {
		return fmt.Errorf("%sa class is listed twice", prefix(d.info.File))
	}
	d.info.Labels, d.info.LabelNames = len(classes), classes
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
			return rowErrorf(file, r.Number, "the class %.100q is none of those known: %s", r.text, listSome(classes))
		}
		clear(dst)
		dst[i] = 1
		r.raw = append(r.raw[:0], float64(i))
		return nil
	}
	return nil
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
			return rowErrorf(info.File, r.Number, "its class %v", err)
		}
		if rows == 1 {
			first = strings.Clone(class)
		}
		if len(seen.texts) > MaxLabels {
			return rowErrorf(info.File, r.Number, "more than %d classes", MaxLabels)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if info.unsure && rows >= suspectRows && seen.texts[first].rows == 1 {
		return nil, nil, kindErrorf(ErrFormat, "%s: the first line has numbers and the class %.100q, which is nowhere else: "+
			"--header yes says that it is a header, --header no that it is a row", info.File, first)
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
		list = append(list, fmt.Sprintf("%.40s (%s)", c.name, counted(c.rows, "row")))
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
	return fmt.Sprintf("equal numbers are one %s, such as %.40q and %.40q", what, merged[0], merged[1])
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
