package measures

import "slices"

// Other is a measure of predicted classes or numbers, which has no function of two
// distributions.
type Other struct {
	Measure // without Func
	of      func(*Added) *Stat
}

// Others lists the measures of Added beside More, in the order of tables.
var Others = []Other{
	{of: func(a *Added) *Stat { return &a.Classes.Accuracy }, Measure: Measure{"accuracy", "Accuracy", "fraction of samples with the right predicted class", true, nil}},
	{of: func(a *Added) *Stat { return &a.Classes.MeanRecall }, Measure: Measure{"mean_recall", "Mean recall", "TP/(TP+FN), averaged over true classes", true, nil}},
	{of: func(a *Added) *Stat { return &a.Classes.MeanJaccard }, Measure: Measure{"mean_jaccard", "Mean Jaccard", "TP/(TP+FP+FN), averaged over true classes", true, nil}},
	{of: func(a *Added) *Stat { return &a.Classes.LogLoss }, Measure: Measure{"log_loss", "Log loss", "-ln p of the true class", false, nil}},
	{of: func(a *Added) *Stat { return &a.Scale.Expected.MAE }, Measure: Measure{"mae_expected", "MAE, expected", "|Σ y p - true number|", false, nil}},
	{of: func(a *Added) *Stat { return &a.Scale.Median.MAE }, Measure: Measure{"mae_median", "MAE, median", "|median of p - true number|", false, nil}},
	{of: func(a *Added) *Stat { return &a.Scale.Mode.MAE }, Measure: Measure{"mae_mode", "MAE, mode", "|mode of p - true number|", false, nil}},
	{of: func(a *Added) *Stat { return &a.Number.Number.MAE }, Measure: Measure{"mae", "MAE", "|predicted number - true number|", false, nil}},
	{of: func(a *Added) *Stat { return &a.Number.Floored.MAE }, Measure: Measure{"mae_floored", "MAE, floored", "|floor of the predicted number - true number|", false, nil}},
}

// Find returns the measure of a name, one of All, More or Others.
func Find(name string) (Measure, bool) {
	for _, m := range slices.Concat(All, More) {
		if m.Name == name {
			return m, true
		}
	}
	for _, o := range Others {
		if o.Name == name {
			return o.Measure, true
		}
	}
	return Measure{}, false
}

// Names lists the names that Find knows, in the order of tables.
func Names() (names []string) {
	for _, m := range slices.Concat(All, More) {
		names = append(names, m.Name)
	}
	for _, o := range Others {
		names = append(names, o.Name)
	}
	return names
}

// Value returns the measure of a name: one of the ten from r, another from a, which may be nil.
// false: r and a have it not, as a model of distributions has no accuracy.
func Value(name string, r Report, a *Added) (Stat, bool) {
	if s, ok := r.Get(name); ok || a == nil {
		return s, ok
	}
	if a.Distribution != nil {
		for i, s := range a.Distribution.Stats() {
			if More[i].Name == name {
				return *s, true
			}
		}
	}
	for i, o := range Others {
		if o.Name == name && a.has(i) {
			return *o.of(a), true
		}
	}
	return Stat{}, false
}

// has tells whether a has the measure i of Others.
func (a *Added) has(i int) bool {
	switch {
	case i < 4:
		return a.Classes != nil
	case i < 7:
		return a.Scale != nil
	}
	return a.Number != nil
}
