package estimate

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/lullgo/lull/cmd/lull/internal/learn/source"
)

func TestDebug(t *testing.T) {
	if os.Getenv("LOG") == "" {
		t.Skip()
	}
	d, err := source.Read(context.Background(), []string{os.Getenv("LOG")}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, _ := Make(d)
	fmt.Println(w.Happened)
	s := coarse(d.Series[len(d.Series)-1:])
	s.findCalm()
	for _, x := range d.Series {
		fmt.Println(x.Side, x.Service, x.Host, x.Step, len(x.Points))
	}
	fmt.Println(s.Step, s.Resolution, s.Exact, len(s.Points), len(s.Edges), s.incidents, s.rate, s.median, s.failing, s.slow)
	for _, r := range s.incidents {
		fmt.Println(r)
		for i := max(r.from-3, 0); i < min(r.to+3, len(s.Points)); i++ {
			fmt.Printf("%d %v began %v ok %v cut %v failed %v p %.3f %.3f %.3f\n", i, s.bad[i], s.began[i], s.ok[i], s.cut[i], s.failed[i], s.p[0][i], s.p[1][i], s.p[2][i])
		}
	}
}
