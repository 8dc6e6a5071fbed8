package dataset

import (
	"archive/zip"
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset/npy"
)

func defaultFeatureName(i int) string { return "x" + strconv.Itoa(i) }
func defaultLabelName(i int) string   { return "label_" + strconv.Itoa(i) }

// WriteFile writes src to a .csv, .csv.gz or .npz file, by its name. The rows are
// checked, and read back as the same float32 values. On an error nothing new
// remains, and a file that stood there before stays.
func WriteFile(path string, src Source, o ImportOptions) (err error) {
	write, err := writer(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".write-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = errors.Join(write(f, src, o), f.Chmod(0o644), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func writer(path string) (func(io.Writer, Source, ImportOptions) error, error) {
	switch name := strings.ToLower(path); {
	case strings.HasSuffix(name, ".csv"):
		return WriteCSV, nil
	case strings.HasSuffix(name, ".npz"):
		return WriteNPZ, nil
	case strings.HasSuffix(name, ".csv.gz"):
		return writeCSVGZ, nil
	}
	return nil, fmt.Errorf("%s: not a known kind of data file to write; the name must end in .csv, .csv.gz or .npz", path)
}

func writeCSVGZ(w io.Writer, src Source, o ImportOptions) error {
	z := gzip.NewWriter(w)
	return errors.Join(WriteCSV(z, src, o), z.Close())
}

// WriteCSV writes src with a header: row_name (where rows have names), features,
// and labels with the prefix "label_". Numbers are the shortest that read back as
// the same float32.
func WriteCSV(w io.Writer, src Source, o ImportOptions) error {
	info := src.Info()
	if err := info.check(); err != nil {
		return err
	}
	out := csv.NewWriter(bufio.NewWriterSize(w, 1<<16))
	record := csvHeader(&info)
	if err := out.Write(record); err != nil {
		return err
	}
	err := scanChecked(src, &o, "write", info.Rows, func(r *Row, c *checker) error {
		record = record[:0]
		if info.HasRowNames {
			record = append(record, r.Name)
		}
		_, values := c.store(false)
		record = appendNumbers(appendNumbers(record, values), c.labels)
		return out.Write(record)
	})
	out.Flush()
	return errors.Join(err, out.Error())
}

func csvHeader(info *Info) (record []string) {
	if info.HasRowNames {
		record = append(record, "row_name")
	}
	for i := range info.Features {
		if info.FeatureNames != nil {
			record = append(record, info.FeatureNames[i])
		} else {
			record = append(record, defaultFeatureName(i))
		}
	}
	for i := range info.Labels {
		if info.LabelNames != nil {
			record = append(record, "label_"+info.LabelNames[i])
		} else {
			record = append(record, defaultLabelName(i))
		}
	}
	return record
}

func appendNumbers(record []string, values []float32) []string {
	for _, v := range values {
		record = append(record, strconv.FormatFloat(float64(v), 'g', -1, 32))
	}
	return record
}

// WriteNPZ writes src as float32 arrays "features" and "labels", and the names as
// "feature_names", "label_names" and "row_names" where there are any. It scans src
// once for each array.
func WriteNPZ(w io.Writer, src Source, o ImportOptions) error {
	info := src.Info()
	if err := info.check(); err != nil {
		return err
	}
	if info.Rows < 0 {
		s, err := newSurvey(src, &o)
		if err != nil {
			return err
		}
		info.Rows = s.rows
	}
	z := zip.NewWriter(w)
	n := npzWriter{z, src, &o, info}
	err := n.floats("features", info.Features, func(c *checker) []float32 { _, v := c.store(false); return v })
	if err == nil && info.Labels > 0 {
		err = n.floats("labels", info.Labels, func(c *checker) []float32 { return c.labels })
	}
	if err == nil {
		err = n.names()
	}
	return errors.Join(err, z.Close())
}

type npzWriter struct {
	zip  *zip.Writer
	src  Source
	o    *ImportOptions
	info Info
}

func (n *npzWriter) floats(name string, columns int, values func(*checker) []float32) error {
	w, err := n.zip.Create(name + ".npy")
	if err != nil {
		return err
	}
	out, err := npy.NewWriter(w, n.info.Rows, columns)
	if err != nil {
		return err
	}
	rows := 0
	err = scanChecked(n.src, n.o, "write", n.info.Rows, func(_ *Row, c *checker) error {
		rows++
		return out.Write(values(c))
	})
	if err == nil && rows != n.info.Rows {
		err = fmt.Errorf("dataset: %d rows where %d are due: %w", rows, n.info.Rows, ErrChanged)
	}
	return errors.Join(err, out.Flush())
}

func (n *npzWriter) names() error {
	err := n.list("feature_names", n.info.FeatureNames)
	if err == nil {
		err = n.list("label_names", n.info.LabelNames)
	}
	if err != nil || !n.info.HasRowNames {
		return err
	}
	return n.strings("row_names", n.info.Rows, func(f func(string) error) error {
		return n.src.Scan(func(r *Row) error {
			if r.LeftOut {
				return nil
			}
			return f(r.Name)
		})
	})
}

func (n *npzWriter) list(name string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	return n.strings(name, len(names), func(f func(string) error) error {
		for _, s := range names {
			if err := f(s); err != nil {
				return err
			}
		}
		return nil
	})
}

func (n *npzWriter) strings(name string, count int, each func(func(string) error) error) error {
	w, err := n.zip.Create(name + ".npy")
	if err != nil {
		return err
	}
	return npy.WriteStrings(w, count, each)
}
