// Package dldl implements DLDL (Gao et al. 2017, "Deep Label Distribution Learning With Label
// Ambiguity"): a network whose outputs' softmax is the label distribution, trained by the K-L divergence in
// mini-batches. It has the networks of package network, which LDLF may stand on too, so that the two
// differ in what follows the network: a softmax here, a forest there.
//
// Of labels on a scale the paper predicts the expected value; measures show it beside the mode.
package dldl
