// Package ldlldm is LDL-LDM of Wang and Geng 2021: the maximum-entropy model of package maxent,
// whose loss gains two terms that keep its predictions on the manifold of label distributions.
//
// Σ over rows of K-L(d, p) + ½·l1·‖W‖² + l2·‖P(I - Z⁰)‖² + l3·Σ_g ‖P_g(I - Z^g)‖² is minimised, where P has
// a row for each prediction, P_g those of cluster g of the rows by k-means on the labels, and Z rebuilds each
// label's column of D, or of D_g, from the other columns. A row of cluster g so gains pᵀ·M_g·p with
// M_g = l2·(I - Z⁰)(I - Z⁰)ᵀ + l3·(I - Z^g)(I - Z^g)ᵀ.
//
// Three kinds of rounds come before the fit: one that draws the first centres, k-means, and one that
// sums the products of labels from which each Z follows.
package ldlldm
