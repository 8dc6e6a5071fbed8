package dataset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// useClasses makes one-hot labels of Row.text.
func (d *derivedLabels) useClasses(classes []string) error {
	if len(classes) == 0 {
		found, err := distinctClasses(d.Source)
		if err != nil {
			return err
		}
		classes = found
	}
	number := make(map[string]int, len(classes))
	for i, class := range classes {
		number[class] = i
	}
	if len(number) != len(classes) {
		return fmt.Errorf("%sa class is listed twice", prefix(d.info.File))
	}
	d.info.Labels, d.info.LabelNames = len(classes), classes
	file, of := d.info.File, d.Source.Info()
	d.derive = func(dst []float64, r *Row) error {
		if isMissing(r.text) {
			return missingClass(&of, r)
		}
		i, ok := number[strings.TrimSpace(r.text)]
		if !ok {
			return rowErrorf(file, r.Number, "the class %.100q is none of the %d known", r.text, len(classes))
		}
		clear(dst)
		dst[i] = 1
		r.raw = append(r.raw[:0], float64(i))
		return nil
	}
	return nil
}

// distinctClasses scans src for its classes, sorted.
func distinctClasses(src Source) ([]string, error) {
	info := src.Info()
	seen, file := map[string]bool{}, info.File
	first, rows, again := "", 0, 0 // rows with the class of the first
	err := src.Scan(func(r *Row) error {
		if r.LeftOut {
			return nil
		}
		if isMissing(r.text) {
			return missingClass(&info, r)
		}
		class := strings.TrimSpace(r.text)
		if err := checkName(class); err != nil {
			return rowErrorf(file, r.Number, "its class %v", err)
		}
		if rows++; rows == 1 {
			first = strings.Clone(class)
		} else if class == first {
			again++
		}
		if seen[class] {
			return nil
		}
		if seen[strings.Clone(class)] = true; len(seen) > MaxLabels { // the text of a class is a part of its record
			return rowErrorf(file, r.Number, "more than %d classes", MaxLabels)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if info.unsure && again == 0 && rows >= suspectRows {
		return nil, kindErrorf(ErrFormat, "%s: the first line has numbers and the class %.100q, which is nowhere else: "+
			"--header yes says that it is a header, --header no that it is a row", file, first)
	}
	classes := make([]string, 0, len(seen))
	for class := range seen {
		classes = append(classes, class)
	}
	sortClasses(classes)
	return classes, nil
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

// sortClasses sorts by value where all are numbers, otherwise by text.
func sortClasses(classes []string) {
	values := make(map[string]float64, len(classes))
	for _, class := range classes {
		v, err := strconv.ParseFloat(class, 64)
		if err != nil || v != v {
			slices.Sort(classes)
			return
		}
		values[class] = v
	}
	slices.SortFunc(classes, func(a, b string) int {
		return cmp.Or(cmp.Compare(values[a], values[b]), cmp.Compare(a, b))
	})
}
