//go:build !stress

package cluster_test

const manyProjects = 3_000

// manyDuties are on a real database.
const manyDuties = 5_000
