package modelserver

import (
	"encoding/binary"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/model/server"
)

var (
	firstSeed = flag.Uint64("first-seed", 0, "seed of the first random sequence")
	sequences = flag.Uint64("sequences", 60, "number of random sequences")
)

// length is the number of requests of a sequence.
const length = 100

func TestRandomRequestsAreAnsweredAlike(t *testing.T) {
	s := harness.Join(t, harness.Setup{NoPrograms: true}, harness.Within(30*time.Minute))
	covered := map[string]int{}
	for i := range *sequences {
		runSequence(s, *firstSeed+i, covered)
	}
	t.Log("answers by method, resource and code:", covered)
	for _, resource := range []string{"persistentvolumes", "persistentvolumeclaims", "leases"} {
		for _, answer := range []string{"GET 200", "POST 201", "POST 409", "PUT 200", "PUT 409", "PUT 422", "PATCH 200",
			"PATCH 409", "PATCH 422", "DELETE 200", "DELETE 404", "DELETE 409"} {
			method, code, _ := strings.Cut(answer, " ")
			if covered[method+" "+resource+" "+code] == 0 {
				t.Errorf("no %s of %s was answered with %s", method, resource, code)
			}
		}
	}
}

// runSequence sends the requests of a seed to both servers until they answer differently.
func runSequence(s *harness.Session, seed uint64, covered map[string]int) {
	s.T.Helper()
	prefix := fmt.Sprintf("m%x-%d-", binary.BigEndian.Uint32([]byte(s.Namespace)[4:8]), seed)
	p, err := newPair(s.Plane.RESTConfig(), prefix)
	s.Must(err, "connect to API server")
	g := newGenerator(seed, prefix, s.Namespace)
	for i := range length {
		request := g.next(p.cluster)
		answer, err := p.send(s.Ctx, request)
		if err != nil {
			s.T.Errorf("seed %d, request %d: %s %s?%s %s %s: %v", seed, i+1, request.Method, request.Path, request.Query,
				request.ContentType, request.Body, err)
			return
		}
		key, _ := server.KeyOf(request)
		covered[fmt.Sprint(request.Method, " ", key.Resource, " ", answer.Code)]++
	}
}
