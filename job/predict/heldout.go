package predict

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"io"
	"strconv"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/internal/units"
)

// WriteHeldOut writes the true and the predicted distribution of each sample. w compresses if the format says so.
func WriteHeldOut(w io.Writer, f write.Format, s *predictions.Set) error {
	names := s.LabelNames
	if len(names) == 0 {
		names = defaultLabels(s.Labels)
	}
	if f == write.NPZ {
		return heldOutNPZ(w, s, names)
	}
	return heldOutCSV(w, s, names)
}

// heldOutCSV writes the columns row, name and fold, if samples have names and folds. Then it writes true_ and
// predicted_ columns for each label (or the predicted number), the true class or number, and what is derived from the
// prediction.
func heldOutCSV(w io.Writer, s *predictions.Set, names []string) error {
	buffer := bufio.NewWriterSize(w, 1<<16)
	out := csv.NewWriter(buffer)
	record, derived := heldOutHeader(s, names), heldOutDerivation(s, names)
	if err := out.Write(record); err != nil {
		return err
	}
	for i, row := range s.Row {
		record = append(record[:0], strconv.FormatUint(uint64(row), 10))
		if len(s.Names) > 0 {
			record = append(record, s.Names[i])
		}
		if len(s.Fold) > 0 {
			record = append(record, strconv.Itoa(int(s.Fold[i])))
		}
		for _, of := range [][]float32{s.TruthOf(i), s.PredictedOf(i)} {
			for _, v := range of {
				record = append(record, valueText(v))
			}
		}
		if s.Type.Classes {
			record = append(record, names[dataset.Greatest(s.TruthOf(i))])
		}
		if len(s.True) > 0 {
			record = append(record, units.InFull(s.True[i]))
		}
		if err := out.Write(derived.fields(record, s.PredictedOf(i))); err != nil {
			return err
		}
	}
	out.Flush()
	return cmp.Or(out.Error(), buffer.Flush())
}

func heldOutHeader(s *predictions.Set, names []string) []string {
	names = columnNames(names, []string{"class", "number"}) // labels of these names would have the same columns
	header := []string{"row"}
	if len(s.Names) > 0 {
		header = append(header, "name")
	}
	if len(s.Fold) > 0 {
		header = append(header, "fold")
	}
	for _, name := range names {
		header = append(header, "true_"+name)
	}
	if s.Number {
		header = append(header, "number")
	} else {
		for _, name := range names {
			header = append(header, "predicted_"+name)
		}
	}
	if s.Type.Classes {
		header = append(header, "true_class")
	}
	if len(s.True) > 0 {
		header = append(header, "true_number")
	}
	return append(header, heldOutDerivation(s, names).columns()...)
}

// heldOutDerivation says what is derived from the predictions of a set.
func heldOutDerivation(s *predictions.Set, names []string) *derivation {
	if s.Number {
		return &derivation{}
	}
	return &derivation{of: s.Type, labels: names}
}

// heldOutNPZ writes the arrays "rows" and "folds" (int64), "labels" and "predictions" (float32, samples x labels), the
// arrays of heldOutTruth, "label_names" and "row_names".
func heldOutNPZ(w io.Writer, s *predictions.Set, names []string) error {
	z := npy.NewArchive(w)
	err := writeInts(z, "rows", s.Row)
	if err == nil && len(s.Fold) > 0 {
		err = writeInts(z, "folds", s.Fold)
	}
	err = cmp.Or(err,
		writeFloats(z, "labels", s.Truth, s.Labels), writeFloats(z, "predictions", s.Predicted, s.Width()),
		heldOutTruth(z, s, names),
		z.List("label_names", names),
	)
	if err == nil && len(s.Names) > 0 {
		err = z.List("row_names", s.Names)
	}
	return cmp.Or(err, z.Close())
}

// heldOutTruth writes the true classes (true_class, int64) or the true numbers (true_number, float32), and what is
// derived from the predictions.
func heldOutTruth(z *npy.Archive, s *predictions.Set, names []string) error {
	derived := derivedArrays{derivation: heldOutDerivation(s, names)}
	var classes []int32
	var numbers []float32
	for i := range s.Row {
		derived.add(s.PredictedOf(i))
		if s.Type.Classes {
			classes = append(classes, int32(dataset.Greatest(s.TruthOf(i))))
		}
		if len(s.True) > 0 {
			numbers = append(numbers, float32(s.True[i]))
		}
	}
	var err error
	if s.Type.Classes {
		err = writeInts(z, "true_class", classes)
	}
	if err == nil && numbers != nil {
		err = writeFloats(z, "true_number", numbers, 1)
	}
	return cmp.Or(err, derived.write(z))
}
