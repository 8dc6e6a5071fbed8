package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"unicode"
)

// notAnInput refuses to write over a file that a command reads.
func notAnInput(flag, out string, inputs ...string) error {
	written, err := os.Stat(out)
	if err != nil || !written.Mode().IsRegular() {
		return nil // there is nothing that could be lost
	}
	for _, in := range inputs {
		if read, err := os.Stat(in); err == nil && os.SameFile(written, read) {
			return usagef("%s %s: this command reads that file; give another name", flag, out)
		}
	}
	return nil
}

// outputFlag is a flag that names a file to write.
type outputFlag struct{ flag, path string }

// apart refuses two outputs that would be one file: the later one would replace the other.
func apart(outputs ...outputFlag) error {
	taken := make(map[string]string)
	for _, o := range outputs {
		if o.path == "" {
			continue
		}
		place := placeOf(o.path)
		if first := taken[place]; first != "" {
			return usagef("%s %s: %s writes to this file, too; give another name", o.flag, o.path, first)
		}
		taken[place] = o.flag
	}
	return nil
}

// placeOf is a file's path from the root, without links, whether the file is there or not.
func placeOf(path string) string {
	if path == stdoutName {
		return path
	}
	if full, err := filepath.EvalSymlinks(path); err == nil {
		path = full
	} else if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(folder, filepath.Base(path))
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// belongTo refuses flags that say how a data file is read where there is none: a
// dataset was read when it was imported.
func (d *dataFlags) belongTo(data string) error {
	if data != "" {
		return nil
	}
	plain := dataFlags{fileFlags: fileFlags{Header: "auto"}}
	if name := differing(reflect.ValueOf(*d), reflect.ValueOf(plain)); name != "" {
		return usagef("%s says how to read a data file: it needs --data; for a dataset, give it to coppice dataset import", name)
	}
	return nil
}

// differing returns the flag of the first field in which two structs of flags differ,
// or nothing.
func differing(a, b reflect.Value) string {
	for i := range a.NumField() {
		f := a.Type().Field(i)
		switch {
		case f.Anonymous:
			if name := differing(a.Field(i), b.Field(i)); name != "" {
				return name
			}
		case !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()):
			return "--" + kebab(f.Name)
		}
	}
	return ""
}

// kebab writes the name of a field as that of its flag: LabelColumns, label-columns.
func kebab(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
