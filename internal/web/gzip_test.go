package web_test

import (
	"os"
	"testing"

	"switchyard/internal/web"
)

func BenchmarkGzip(b *testing.B) {
	page, err := os.ReadFile("../../views/testdata/overview_busy.html")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		b.ReportMetric(float64(len(web.Gzip(page)))/float64(len(page)), "of-plain")
	}
}
