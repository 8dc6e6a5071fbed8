package commands

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// golden lists command lines and what they compute: of a training the digests of the
// dataset and of its models, the last training loss and the mean K-L divergence of all
// evaluated rows; of another command the digest of what it prints. Ten digits of a digest
// show a change as well as all.
//
// None of it depends on processor, threads, or storage in blocks. A refactoring changes
// nothing here; what does change a model changes algorithms.Numerics as well.
var golden = []struct{ Program, want string }{
	{"train --data set.csv --steps 200 --set trees=3 --set depth=5 --set leaf_batches=50 --set batch_size=64 " +
		"--test-fraction 0.1 --seed 7 --model-out ldlf.coppice",
		"data 7a61c5b455 model aa418cd856 loss 0.00019197960440918866 K-L 0.00012168337279857598"},
	{"train --data set.csv --steps 60",
		"data 7a61c5b455 model bbf123a18a loss 0.00015788613765551116 K-L 0.00010546986491439941"},
	{"train --data set.csv --steps 60 --threads 1",
		"data 7a61c5b455 model bbf123a18a loss 0.00015788613765551116 K-L 0.00010546986491439941"},
	{"train --data set.csv --steps 60 --threads 3",
		"data 7a61c5b455 model bbf123a18a loss 0.00015788613765551116 K-L 0.00010546986491439941"},
	{"train --data set.csv --steps 60 --kept-memory 1",
		"data 7a61c5b455 model bbf123a18a loss 0.00015788613765551116 K-L 0.00010546986491439941"},
	{"train --data set.csv --steps 60 --seed 18446744073709551615",
		"data 7a61c5b455 model d27050f32d loss 0.0002358906261553389 K-L 0.00013322286722707762"},
	{"train --data set.csv --steps 150 --set preset=paper",
		"data 7a61c5b455 model d9e3f54f76 loss 0.002937693415152775 K-L 0.002494243966985027"},
	{"train --data set.csv --steps 150 --set preset=paper --set optimizer=adam --set scaling=minmax --set bias=false",
		"data 7a61c5b455 model bbb7cc90ab loss 0.013368649512465376 K-L 0.012977167280978112"},
	{"train --data set.csv --steps 60 --set preset=paper --set leaf_first=true --set leaf_batches=7 --set " +
		"leaf_iterations=3 --set weight_decay=0.01 --set learning_rate_step=20",
		"data 7a61c5b455 model e687a951cf loss 0.004670192729886525 K-L 0.004264273473571347"},
	{"train --data set.csv --steps 60 --set outputs=200 --set depth=2 --set momentum=0 --set init=xavier --set " +
		"learning_rate=0.5 --set learning_rate_decay=0.9 --set learning_rate_step=13",
		"data 7a61c5b455 model f03319cf90 loss 0.02710865341610623 K-L 0.018104957260912113"},
	{"train --data set.csv --steps 20 --set depth=8 --set trees=2 --set batch_size=1000",
		"data 7a61c5b455 model 792d1047b2 loss 0.0003043565714332078 K-L 0.00024722212491864543"},
	{"train --data set.csv --steps 40 --set trees=70 --set depth=3",
		"data 7a61c5b455 model 8762e7f2a5 loss 0.008049521082622503 K-L 0.003389115965276877"},
	{"train --data set.csv --set trees=3 --set depth=4 --set batch_size=64 --steps 60 --set validation_fraction=0",
		"data 7a61c5b455 model 02faf4fdf7 loss 0.0003897027414180586 K-L 0.00022498356407044042"},
	{"train --data set.csv --set trees=3 --set depth=4 --set batch_size=64 --steps 60 --set patience=1 --set " +
		"leaf_batches=5 --test-fraction 0.2",
		"data 7a61c5b455 model 54a39c61bf loss 0.00036131273648084964 K-L 0.0001573576446970555"},
	{"train --data set.csv --set trees=3 --set depth=4 --set batch_size=64 --steps 60 --set refit=false --set " +
		"validation_margin=1 --set patience=2 --set leaf_batches=5",
		"data 7a61c5b455 model 140240935d loss 0.00032797508574676417 K-L 0.00018323815656959356"},
	{"train --data large.npz --set trees=3 --set depth=4 --set batch_size=64 --steps 60 --folds 3",
		"data 1fc91da2ec model c602e797c4 7cdc888a6a 4da5d73cd4 loss 0.0008760216203016465 K-L 0.0004761402153196619"},
	{"train --data large.npz --set trees=3 --set depth=4 --set batch_size=64 --steps 60 --set scaling=none --set " +
		"optimizer=adam --test-fraction 0.3",
		"data 1fc91da2ec model 4dd58c8850 loss 0.005500273763543272 K-L 0.0037283805102600116"},
	{"train --data dense.npz --set trees=3 --set depth=4 --set batch_size=64 --steps 60 --test-fraction 0.2",
		"data 4f370dc78f model f2f5862f1b loss 0.25356565104832535 K-L 0.3780049818970393"},
	{"train --data dense.npz --set trees=3 --set depth=4 --set batch_size=64 --steps 60 --set scaling=minmax --set " +
		"preset=paper --set leaf_batches=20",
		"data 4f370dc78f model 849e8ee2f7 loss 0.5407665024200746 K-L 0.5371276882825776"},
	{"train --data sparse.npz --set trees=3 --set depth=4 --set batch_size=64 --steps 60 --test-fraction 0.2",
		"data a4736a76e0 model dc75058cc9 loss 0.41171181906573023 K-L 0.5057703416583373"},
	{"train --data sparse.npz --set trees=3 --set depth=4 --set batch_size=64 --steps 60 --set scaling=standard",
		"data a4736a76e0 model f1de60f4ed loss 0.44764996655096717 K-L 0.4529916035898698"},
	{"train --data sparse.npz --set trees=3 --set depth=4 --set batch_size=64 --steps 60 --set scaling=minmax --set " +
		"optimizer=adam --set init=normal --set init_std=0.1",
		"data a4736a76e0 model 763033f94b loss 0.48496171815912875 K-L 0.48748984055249955"},
	{"train --data counts.libsvm --labels counts --set trees=3 --set depth=4 --set batch_size=64 --steps 60 --folds 2",
		"data 053a47f1f7 model e6621c05b9 86f90d8546 loss 0.23868950636779895 K-L 0.2508105236955335"},
	{"train --data holes.csv --missing drop --set trees=3 --set depth=4 --set batch_size=64 --steps 60 --test-fraction " +
		"0.25",
		"data dd6e6cef67 model a969a87a88 loss 0.11539841026377022 K-L 0.10940472529991856"},
	{"train --data holes.csv --missing=-1.5 --set trees=3 --set depth=4 --set batch_size=64 --steps 60 --split folds.csv",
		"data 01ec0ced94 model ef09d3330e c7d0d35939 d3f11488f1 loss 0.11453986236393092 K-L 0.11481862789214485"},
	{"train --data classes.csv --labels class --set trees=3 --set depth=4 --set batch_size=64 --steps 60 --folds 4",
		"data c11209c09b model 2aed0f7551 4c4cda080c 3ab42486ed bad0da7cc1 loss 0.06366176696684403 K-L 0.06512151286962889"},
	{"train --data ages.csv --labels age --sigma 2 --range 0:20 --set trees=3 --set depth=4 --set batch_size=64 --steps " +
		"60 --drop b --split folds.csv",
		"data 6c42f44f13 model f0cd11d2cc 0d5637f045 bb39eb6893 loss 0.5259636239290711 K-L 0.5239929914325553"},
	{"train --data set.csv --feature-columns 2,0 --set trees=3 --set depth=4 --set batch_size=64 --steps 60",
		"data 17a52d6562 model 99181b7d77 loss 0.011052611676074253 K-L 0.011140668610099437"},
	{"train --data dense.npz --set features=mlp --set hidden=16,8 --set layer_norm=true --set trees=2 --set depth=4 " +
		"--set batch_size=128 --steps 60 --test-fraction 0.2",
		"data 4f370dc78f model e57a2f64af loss 0.5555778898008836 K-L 0.5501057430369675"},
	{"train --data sparse.npz --set features=mlp --set hidden=16 --set dropout=0 --set optimizer=sgd --set trees=2 " +
		"--set depth=4 --steps 60 --test-fraction 0.2",
		"data a4736a76e0 model 815819b4d3 loss 0.43082343167009984 K-L 0.48271510809809454"},
	{"train --data dense.npz --set features=conv --set shape=1x5x8 --set channels=3,4 --set hidden=8 --set trees=2 " +
		"--set depth=4 --set batch_size=128 --steps 60 --test-fraction 0.2",
		"data 4f370dc78f model 4b60252b93 loss 0.5425687967884374 K-L 0.5722879212651903"},
	{"train --data dense.npz --set features=conv --set shape=2x4x5 --set channels=3 --set kernel=2 --set stride=2 --set " +
		"padding=1 --set pooling=average --set layer_norm=true --set flip=true --set shift=1 --set hidden=none --set " +
		"trees=2 --set depth=4 --steps 60",
		"data 4f370dc78f model 945be11091 loss 0.5428549318685939 K-L 0.5419855562141289"},
	{"train --data dense.npz --algorithm dldl --set features=conv --set shape=1x5x8 --set channels=4 --set hidden=8 " +
		"--set batch_size=128 --steps 120 --test-fraction 0.2",
		"data 4f370dc78f model ac48bd442f loss 0.5778606296454607 K-L 0.5603613760467898"},
	{"train --data sparse.npz --algorithm dldl --set hidden=16 --set layer_norm=true --set optimizer=sgd --set " +
		"scaling=standard --steps 120 --folds 2",
		"data a4736a76e0 model dca851445f c7cea6afa8 loss 0.26615616518135904 K-L 0.5393092885818584"},
	{"train --data set.csv --algorithm structrf --set preset=paper --set trees=4 --test-fraction 0.1 --model-out " +
		"structrf.coppice",
		"data 7a61c5b455 model f999de43b1 loss 0.004077613231529994 K-L 0.005065279678548901"},
	{"train --data set.csv --algorithm structrf --set preset=paper --set trees=4 --threads 1 --test-fraction 0.1",
		"data 7a61c5b455 model f999de43b1 loss 0.004077613231529994 K-L 0.005065279678548901"},
	{"train --data set.csv --algorithm structrf --set preset=paper --set trees=4 --set step=adaptive --folds 3",
		"data 7a61c5b455 model 28e2edb4da df97f945a8 a99ce8b509 loss 0.005151074188804846 K-L 0.005766984317281985"},
	{"train --data set.csv --algorithm structrf --set trees=4 --set step=adaptive --set alpha=1 --set beta=0.5 --set " +
		"min_samples=2 --set max_depth=60",
		"data 7a61c5b455 model e50d8ef054 loss 3.495467804093266e-17 K-L 0.000716339441463585"},
	{"train --data large.npz --algorithm structrf --set preset=paper --set trees=4 --set features=0.5 --set " +
		"sampling_ratio=0.3 --seed 9",
		"data 1fc91da2ec model 2dfb29d432 loss 0.003885974726397714 K-L 0.002668125127661162"},
	{"train --data dense.npz --algorithm structrf --set trees=4 --set features=sqrt --set min_samples=5 --test-fraction " +
		"0.2",
		"data 4f370dc78f model 456a274342 loss 0.11409912487913336 K-L 0.6201308331838651"},
	{"train --data sparse.npz --algorithm structrf --set preset=paper --set trees=4 --set max_depth=6 --test-fraction 0.2",
		"data a4736a76e0 model bcf2296286 loss 0.43586631761714995 K-L 0.49328167080875124"},
	{"train --data sparse.npz --algorithm structrf --set preset=paper --set trees=4 --set step=adaptive --set " +
		"sampling_ratio=1",
		"data a4736a76e0 model 2ff6fdafa7 loss 0.3448912523201283 K-L 0.3965432791174976"},
	{"train --data counts.libsvm --labels counts --algorithm structrf --set preset=paper --set trees=4 --split folds.csv",
		"data 053a47f1f7 model cf9f5ecfc5 0d13f83f37 0e885f1de3 loss 0.12511573575902651 K-L 0.3329131181731125"},
	{"train --data holes.csv --missing drop --algorithm structrf --set preset=paper --set trees=4 --folds 2",
		"data dd6e6cef67 model 837ac23b3e 9a83f03abf loss 0.08458980526676846 K-L 0.13762900734442873"},
	{"train --data ages.csv --labels age --sigma 2 --range 0:20 --algorithm structrf --set preset=paper --set trees=4 " +
		"--test-fraction 0.2",
		"data 30185bc0ab model 232145b7c9 loss 0.036013704094999203 K-L 0.02697038460755824"},
	{"train --data set.csv --algorithm structrf --set trees=4 --set step=adaptive --set alpha=0.5 --set beta=4 " +
		"--test-fraction 0.1",
		"data 7a61c5b455 model 5873fd4b71 loss 0.0005028892618236844 K-L 0.0029524794324122714"},
	{"train --data set.csv --algorithm rf --set preset=paper --set trees=4 --test-fraction 0.1 --model-out rf.coppice",
		"data 7a61c5b455 model 7013f2cb87 loss 0.13558230170476693 K-L 7.2505525835909665"},
	{"train --data set.csv --algorithm rf --set preset=paper --set trees=4 --set step=adaptive --set features=sqrt " +
		"--folds 3",
		"data 7a61c5b455 model 4e3e12700c c2777da6ad 674985acdc loss 0.16185596038669264 K-L 5.794830943830152"},
	{"train --data classes.csv --labels class --algorithm rf --set trees=4 --set min_samples=2 --split folds.csv",
		"data c11209c09b model 98bdd5d8a1 240c7d24b1 6dbb551217 loss 0 K-L 0"},
	{"train --data classes.csv --labels class --algorithm rf --set preset=paper --set trees=4 --set max_depth=1",
		"data c11209c09b model 5949da8773 loss 0.39148116432490865 K-L 0.3819275071735395"},
	{"train --data dense.npz --algorithm rf --set preset=paper --set trees=4 --set features=0.2 --seed 3",
		"data 4f370dc78f model 641c89045a loss 0.7582670560234562 K-L 2.823898540664513"},
	{"train --data sparse.npz --algorithm rf --set preset=paper --set trees=4 --set step=adaptive --test-fraction 0.2",
		"data a4736a76e0 model d70d30c0d8 loss 0.5974935651940307 K-L 1.5017680135746407"},
	{"train --data holes.csv --missing 0 --algorithm rf --set preset=paper --set trees=4 --set sampling_ratio=0.5 " +
		"--test-fraction 0.2",
		"data f7287a1248 model 91bfbd1491 loss 0.5112709883218667 K-L 0.24412947184301634"},
	{"predict --model ldlf.coppice --data set.csv --out -",
		"prints 3bd072286d"},
	{"predict --model structrf.coppice --data set.csv --out -",
		"prints d55160d23e"},
	{"predict --model rf.coppice --data set.csv --out -",
		"prints ce664a3ad8"},
	{"evaluate --model ldlf.coppice --data set.csv --per-sample",
		"prints c6de9359cc"},
}

// TestGoldenCommands: the command lines of golden compute what is written there.
func TestGoldenCommands(t *testing.T) {
	testkit.WithoutRace(t)
	t.Chdir(t.TempDir())
	writeGoldenFiles(t)
	for _, g := range golden {
		t.Run(g.Program, func(t *testing.T) {
			if got := computed(t, g.Program); got != g.want {
				t.Errorf("another result:\n\t{%q,\n\t\t%q},\nwanted\n\t\t%q", g.Program, got, g.want)
			}
		})
	}
}

// computed runs a command line and returns its line of golden.
func computed(t *testing.T, command string) string {
	t.Helper()
	args := strings.Fields(command)
	if args[0] != "train" {
		sum := sha256.Sum256([]byte(cmdtest.Works(t, args...)))
		return "prints " + hex.EncodeToString(sum[:])[:10]
	}
	var r results.Result
	cmdtest.JSON(t, &r, append(args, "--local")...)
	models := []string{r.ModelDigest[:10]}
	for i, f := range r.Folds {
		models = append(models[:i], f.ModelDigest[:10])
	}
	return fmt.Sprintf("data %s model %s loss %v K-L %v", r.DatasetDigest[:10], strings.Join(models, " "), float64(r.Loss),
		r.Measures[0].Mean)
}

// writeGoldenFiles writes the data of golden into the working folder.
func writeGoldenFiles(t *testing.T) {
	t.Helper()
	for _, command := range []string{
		"--out set.csv --rows 400",
		"--out large.npz --rows 3000 --seed 2",
		"--out dense.npz --kind random --rows 300 --features 40 --labels 7",
		"--out sparse.npz --kind random --rows 300 --features 300 --labels 5 --density 0.04",
	} {
		cmdtest.Works(t, append([]string{"dataset", "generate"}, strings.Fields(command)...)...)
	}
	for name, line := range map[string]func(i int) string{
		"holes.csv":     holes,
		"counts.libsvm": counts,
		"ages.csv":      func(i int) string { return fmt.Sprintf("%d,%d,%d", i%7, i*i%11, i%7+i*i%11) },
		"classes.csv": func(i int) string {
			return fmt.Sprintf("%d,%d,%s", i%5, i*i%13, []string{"ash", "elm", "oak"}[i%5/2])
		},
		"folds.csv": func(i int) string { return fmt.Sprintf("%d,%d", i, i*7%10/4) },
	} {
		var b strings.Builder
		b.WriteString(map[string]string{"holes.csv": "a;b;c;label_x;label_y\n", "ages.csv": "a,b,age\n",
			"classes.csv": "a,b,class\n", "folds.csv": "row,fold\n"}[name])
		for i := range 400 {
			b.WriteString(line(i) + "\n")
		}
		cmdtest.Write(t, ".", name, b.String())
	}
}

// holes has a missing value in each ninth row.
func holes(i int) string {
	b := strconv.Itoa(i * i % 17)
	if i%9 == 4 {
		b = "NA"
	}
	return fmt.Sprintf("%d,5;%s;%d;0,%d;0,%d", i%13, b, i%3, 1+i%8, 10-(1+i%8))
}

// counts has three votes and few features that are not 0, counted from 1.
func counts(i int) string {
	return fmt.Sprintf("%d,%d,%d %d:1 %d:%d.25", 1+i%4, i%3, i*i%5, 1+i%50, 51+i*i%97, i%6)
}
