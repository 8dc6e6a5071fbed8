"""Makes the files of this folder: data as people have them.

    python -m venv venv
    venv/bin/pip install numpy==2.4.6 pandas==3.1.1 scipy==1.17.1 scikit-learn==1.9.1 openpyxl==3.1.5 h5py==3.16.0
    venv/bin/python make.py

The rows are always those of ROWS; dataset/people_test.go has what each file is read as.
"""

import os
import pathlib

import h5py
import numpy as np
import openpyxl
import pandas as pd
import scipy.io
import scipy.sparse
import sklearn.datasets

HERE = pathlib.Path(__file__).parent
MADE = (".csv", ".gz", ".tsv", ".npz", ".npy", ".mat", ".svm", ".libsvm", ".xlsx")

FEATURES = ["age", "height in m", "score"]
LABELS = ["label_calm", "label_sad"]
ROWS = [
    [31, 1.5, -0.25, 0.25, 0.75],
    [42, 1.75, 2.5, 0.5, 0.5],
    [27, 1.625, 0.125, 1, 0],
    [65, 1.875, 1024.5, 0.125, 0.875],
]
NAMES = ["Ada", "Jörg, Dr.", 'Eve "E."', "Zoë"]

frame = pd.DataFrame(ROWS, columns=FEATURES + LABELS)
X, Y = np.array(ROWS)[:, :3], np.array(ROWS)[:, 3:]
CLASSES = ["sad", "calm", "calm", "sad"]


def text(name, content, encoding="utf-8"):
    (HERE / name).write_bytes(content.encode(encoding))


def table(delimiter=",", decimal=".", end="\r\n", quote=False, columns=FEATURES + LABELS, rows=ROWS):
    """A spreadsheet's export: numbers as the locale writes them, names quoted where they must be."""

    def cell(v):
        s = v if isinstance(v, str) else repr(v).replace(".", decimal)
        needs = delimiter in s or '"' in s
        return '"' + s.replace('"', '""') + '"' if needs or quote and isinstance(v, str) else s

    lines = [columns] + rows
    return "".join(delimiter.join(cell(v) for v in line) + end for line in lines)


def spreadsheets():
    text("excel_us.csv", table())
    text("excel_us_utf8.csv", "\ufeff" + table())
    text("excel_de.csv", table(";", ","))
    text("excel_fr_names.csv", "\ufeff" + table(";", ",", columns=["name"] + FEATURES + LABELS, rows=[[n] + r for n, r in zip(NAMES, ROWS)]))
    text("excel_sep.csv", "sep=;\r\n" + table(";", ","))
    text("excel_unicode_text.csv", "\ufeff" + table("\t"), "utf-16-le")
    text("excel_utf16be.csv", "\ufeff" + table(";", ","), "utf-16-be")
    text("excel_mac.csv", table(end="\r"))
    text("excel_empty_rows.csv", table(";", ",") + ";;;;\r\n" * 3)
    text("libreoffice_quoted_decimals.csv", "".join(",".join(f'"{v}"'.replace(".", ",") if i else f'"{v}"' for v in line) + "\n" for i, line in enumerate([FEATURES + LABELS] + ROWS)))
    text("excel_thousands.csv", table(";", ",").replace("1024,5", "1.024,5"))
    text("excel_mixed_decimals.csv", table(";", ",").replace("1024,5", "1024.5"))
    text("excel_title_line.csv", "Survey 2024,,,,\r\n" + table())
    book = openpyxl.Workbook()
    for line in [FEATURES + LABELS] + ROWS:
        book.active.append(line)
    book.save(HERE / "survey.xlsx")
    (HERE / "renamed_xlsx.csv").write_bytes((HERE / "survey.xlsx").read_bytes())


def pandas():
    frame.to_csv(HERE / "pandas.csv", index=False)
    frame.to_csv(HERE / "pandas_index.csv")
    pd.read_csv(HERE / "pandas_index.csv").to_csv(HERE / "pandas_index_twice.csv", index=False)
    frame.assign(id=range(100, 104))[["id"] + FEATURES + LABELS].to_csv(HERE / "pandas_id.csv", index=False)
    frame.to_csv(HERE / "pandas_tabs.tsv", sep="\t", index=False)
    frame.to_csv(HERE / "pandas_pipe.csv", sep="|", index=False)
    frame.to_csv(HERE / "pandas_gzip.csv.gz", index=False, compression={"method": "gzip", "mtime": 0})
    (HERE / "gzip_without_gz.csv").write_bytes((HERE / "pandas_gzip.csv.gz").read_bytes())
    holes = frame.copy()
    holes.loc[1, "score"] = np.nan
    holes.to_csv(HERE / "pandas_missing.csv", index=False)
    holes.to_csv(HERE / "pandas_na.csv", index=False, na_rep="NA")
    pd.DataFrame(ROWS).to_csv(HERE / "pandas_numbered.csv")
    pd.DataFrame(X).assign(mood=CLASSES).to_csv(HERE / "pandas_class.csv", index=False)
    pd.DataFrame(X).assign(last=[1, 0, 0, 1]).set_axis(range(4), axis=1).to_csv(HERE / "pandas_numbered_class.csv", index=False)
    frame.to_csv(HERE / "pandas_no_header.csv", index=False, header=False)
    frame.assign(comment=NAMES).to_csv(HERE / "pandas_text_column.csv", index=False)
    frame.rename(columns={"label_calm": "calm", "label_sad": "sad"}).to_csv(HERE / "pandas_plain_labels.csv", index=False)


def r_and_others():
    quoted = [f'"{n}"' for n in FEATURES + LABELS]
    rows = [[f'"{i + 1}"'] + [f"{v:g}" for v in r] for i, r in enumerate(ROWS)]
    text("r_write_csv.csv", "\n".join(",".join(line) for line in [['""'] + quoted] + rows) + "\n")
    text("r_write_csv2.csv", "\n".join(";".join(v.replace(".", ",") for v in line) for line in [['""'] + quoted] + rows) + "\n")
    text("r_write_table.tsv", "\n".join("\t".join(line) for line in [quoted] + rows) + "\n")
    text("no_last_newline.csv", table(end="\n").rstrip("\n"))
    text("blank_lines.csv", table(end="\n") + "\n  \n\n")
    text("latin1.csv", table().replace("height in m", "größe"), "latin-1")
    text("utf16_without_mark.csv", table(), "utf-16-le")


def broken():
    good = table(end="\n")
    text("ragged.csv", good.replace("27,1.625,0.125,1,0", "27,1.625,0.125,1"))
    text("text_in_numbers.csv", good.replace("1.625", "1.62 m"))
    text("two_headers.csv", good.replace("\n", "\nyears,m,points,share,share\n", 1))
    text("truncated.csv", good[: good.rindex("1024")])
    text("open_quote.csv", good.replace("27,", '"27,'))
    text("sums.csv", good.replace("0.5,0.5", "0.5,0.4"))
    whole = (HERE / "pandas_gzip.csv.gz").read_bytes()
    (HERE / "truncated.csv.gz").write_bytes(whole[: len(whole) // 2])


def numpys():
    np.savez(HERE / "good.npz", features=X, labels=Y, feature_names=np.array(FEATURES), label_names=np.array(["calm", "sad"]))
    np.savez_compressed(HERE / "compressed_float32.npz", features=X.astype("f4"), labels=Y.astype("f4"))
    np.savez(HERE / "fortran_big_endian.npz", features=np.asfortranarray(X.astype(">f8")), labels=np.asfortranarray(Y.astype(">f4")))
    np.savez(HERE / "float16.npz", features=X.astype("f2"), labels=Y.astype("f2"))
    np.savez(HERE / "int_classes.npz", features=X, labels=np.array([1, 0, 0, 1], dtype="i8"))
    np.savez(HERE / "other_names.npz", X=X, y=Y)
    np.savez(HERE / "objects.npz", features=X.astype(object), labels=Y)
    np.savez(HERE / "nan.npz", features=np.where(X == 2.5, np.nan, X), labels=Y)
    np.save(HERE / "pair_features.npy", X)
    np.save(HERE / "pair_labels.npy", Y)
    scipy.sparse.save_npz(HERE / "scipy_sparse.npz", scipy.sparse.csr_matrix(X))


def matlab():
    scipy.io.savemat(HERE / "v5.mat", {"features": X, "labels": Y})
    scipy.io.savemat(HERE / "v5_compressed_names.mat", {"features": scipy.sparse.csc_matrix(X), "labels": Y, "label_names": np.array(["calm", "sad"], dtype=object)}, do_compression=True)
    scipy.io.savemat(HERE / "v5_other_names.mat", {"data": X, "truth": Y})
    scipy.io.savemat(HERE / "v4.mat", {"features": X, "labels": Y}, format="4")
    with h5py.File(HERE / "v73.mat", "w", userblock_size=512, track_order=True) as f:
        f.create_dataset("features", data=X.T, track_times=False)
        f.create_dataset("labels", data=Y.T, track_times=False)
    head = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    with open(HERE / "v73.mat", "r+b") as f:
        f.write(head)
    for name in ("v5.mat", "v5_compressed_names.mat", "v5_other_names.mat"):  # without the time
        with open(HERE / name, "r+b") as f:
            f.write(b"MATLAB 5.0 MAT-file Platform: posix".ljust(116))


def libsvm():
    for name, zero, comment in (("zero_based", True, None), ("one_based", False, None), ("zero_based_comment", True, "X")):
        sparse = X.copy()
        if comment:
            sparse[:, 0] = 0  # no index 0: only the comment tells
        sklearn.datasets.dump_svmlight_file(sparse, [1, 0, 0, 1], str(HERE / f"sklearn_{name}.svm"), zero_based=zero, comment=comment)
    text("degrees.libsvm", "".join(f"{r[3]},{r[4]} " + " ".join(f"{i + 1}:{v}" for i, v in enumerate(r[:3])) + "\n" for r in ROWS))


if __name__ == "__main__":
    for old in HERE.iterdir():
        if old.suffix in MADE:
            old.unlink()
    for part in (spreadsheets, pandas, r_and_others, broken, numpys, matlab, libsvm):
        part()
    files = sorted(p.name for p in HERE.iterdir() if p.suffix in MADE)
    print(len(files), "files,", sum(os.path.getsize(HERE / f) for f in files), "bytes")
