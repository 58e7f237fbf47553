package window

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// route is one run of the command. Its first requests are answered by ours or by upstream's API server, as the bits say,
// the others by the one of the last bit.
type route struct {
	found string
	grace *int64
	bits  int
	// ahead is by how much the clock of upstream's API server is ahead, and slow how many seconds the first DELETE takes.
	ahead, slow int
}

// routed is how many bits a route has.
const routed = 5

// routes yields each route of a request for the object.
func routes(found string, yield func(route)) {
	for _, grace := range []*int64{nil, seconds(0), seconds(1), seconds(20), seconds(100)} {
		for ahead, slow := range map[int]int{0: 0, 40: 15, -40: 15} {
			for bits := range 1 << routed {
				yield(route{found, grace, bits, ahead, slow})
			}
		}
	}
}

// objects are the objects that a route may find.
func objects() map[string]*metav1.ObjectMeta {
	inEtcd := object(at(50), "")
	*inEtcd.DeletionGracePeriodSeconds = 45
	return map[string]*metav1.ObjectMeta{
		"live": object(time.Time{}, ""), "leftover": object(time.Time{}, window(5, 6).String()),
		"plain": object(at(5), ""), "forced": object(at(5), window(5, 5).String()),
		"graceful": object(at(5), window(5, 50).String()), "passed": object(at(5), window(4, 9).String()),
		"in etcd": inEtcd, "ahead": object(at(90), window(90, 150).String()),
	}
}

// run runs the command, and checks the object in etcd after each request.
func (r route) run(t *testing.T) {
	s := newAPIServer(t, objects()[r.found])
	s.ahead = time.Duration(r.ahead) * time.Second
	first, asked := deadline.Of(s.object), at(10+min(r.ahead, 0))
	s.before = func(number int) {
		r.check(s, first, asked)
		s.ours = r.bits>>min(number, routed-1)&1 == 1
		s.now = s.now.Add(time.Second)
	}
	s.answer = func(request *http.Request) *metav1.Status {
		if request.Method == http.MethodDelete && !slices.Contains(s.requests[:len(s.requests)-1], http.MethodDelete) {
			s.now = s.now.Add(time.Duration(r.slow) * time.Second)
		}
		return nil
	}
	got, err := s.run(r.grace)
	r.check(s, first, asked)
	read := deadline.Of(s.object)
	if err == nil && !strings.HasSuffix(got, outcome(read)) {
		t.Errorf("%s: %q, %v until %v", r, got, read.Kind(), read.Deadline(0))
	}
	if err != nil && (read != first || r.mustBeMet()) {
		t.Errorf("%s: %v, %v until %v", r, err, read.Kind(), read.Deadline(0))
	}
	latest := s.now.Add(max(s.ahead, 0))
	if err == nil && r.mustBeMet() && !r.isMet(read, latest) {
		t.Errorf("%s: %q, requests %v, asked for by %v", r, got, s.requests, latest)
	}
}

// check fails the test if the grace period is shorter than what was granted, and asked for since.
func (r route) check(s *apiServer, first deadline.Deletion, asked time.Time) {
	s.t.Helper()
	read, named := deadline.Of(s.object), r.grace != nil && *r.grace > 0
	forced := r.grace != nil && *r.grace == 0
	least := first.Deadline(0)
	if by := time.Duration(0); named {
		by = time.Duration(*r.grace) * time.Second
		switch {
		case first.Kind() == deadline.NotDeleted:
			least = read.Requested().Add(by)
		case asked.Add(by).Before(least):
			least = asked.Add(by)
		}
	}
	var whole bool
	switch kind := read.Kind(); first.Kind() {
	case deadline.NotDeleted:
		whole = kind == deadline.NotDeleted || forced && kind == deadline.Forced || named && kind == deadline.Graceful &&
			!read.Deadline(0).Before(least) || r.grace == nil && kind == deadline.Unspecified
	case deadline.Graceful:
		whole = forced || kind == deadline.Graceful && !read.Deadline(0).Before(least) &&
			!read.Deadline(0).After(first.Deadline(0))
	default:
		whole = kind == first.Kind() || forced && kind == deadline.Forced
	}
	if !whole {
		s.t.Errorf("%s: %v until %v after %v, least %v", r, read.Kind(), read.Deadline(0), s.requests, least)
	}
}

// mustBeMet reports whether the request can be met, by whichever clock.
func (r route) mustBeMet() bool {
	live, force := r.found == "live" || r.found == "leftover", r.grace != nil && *r.grace == 0
	return live || force || r.found == "graceful" && r.grace != nil && *r.grace <= 20 && r.ahead <= 0
}

// isMet reports whether the deletion is that of the request, whose grace period counts from latest or earlier.
func (r route) isMet(read deadline.Deletion, latest time.Time) bool {
	switch {
	case r.grace == nil:
		return read.Kind() == deadline.Unspecified
	case *r.grace == 0:
		return read.Forced()
	}
	return read.Kind() == deadline.Graceful && !read.Deadline(0).After(latest.Add(time.Duration(*r.grace)*time.Second))
}

// String returns the route as a table of tests would.
func (r route) String() string {
	text := r.found + ", no grace period"
	if r.grace != nil {
		text = r.found + ", " + (time.Duration(*r.grace) * time.Second).String()
	}
	for number := range routed {
		text += " " + []string{"upstream's", "ours"}[r.bits>>number&1]
	}
	return text + ", clock " + time.Duration(r.ahead*1e9).String() + ", DELETE " + time.Duration(r.slow*1e9).String()
}

// Whichever API server answers which request, with clocks that differ by less than a minute: a grace period is shortened
// by nobody who did not ask for it, at no time, and what the command says is true.
func TestNoRouteShortensGracePeriod(t *testing.T) {
	for found := range objects() {
		t.Run(found, func(t *testing.T) {
			routes(found, func(r route) { r.run(t) })
		})
	}
}
