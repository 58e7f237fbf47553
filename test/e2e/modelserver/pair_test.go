package modelserver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/test/model/server"
)

// pair is a real API server and a model of it. Requests are written for the model; pair
// replaces the UIDs and resource versions of the model by those of the real server.
type pair struct {
	client  *http.Client
	host    string
	cluster server.Cluster
	// prefix is how the names of all objects begin.
	prefix string
	// dryRun: the objects of the answer are not stored.
	dryRun bool
	*names
}

func newPair(config *rest.Config, prefix string) (*pair, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &pair{client: client, host: config.Host, prefix: prefix, cluster: server.NewCluster(), names: newNames()}, nil
}

// send sends the request to both servers. It returns how their answers differ, or what the
// model answered.
func (p *pair) send(ctx context.Context, request server.Request) (server.Response, error) {
	key, _ := server.KeyOf(request)
	inReal := request
	inReal.Body = p.toReal(key, request.Body)
	p.dryRun = request.Query != "" && (request.Method != http.MethodDelete || request.Body == "")
	actual, err := p.sendReal(ctx, inReal)
	if err != nil {
		return server.Response{}, err
	}
	after, model := p.cluster.Serve(request)
	p.cluster = after
	return model, p.compare(model, actual)
}

func (p *pair) sendReal(ctx context.Context, request server.Request) (server.Response, error) {
	url := p.host + request.Path
	if request.Query != "" {
		url += "?" + request.Query
	}
	sent, err := http.NewRequestWithContext(ctx, request.Method, url, strings.NewReader(request.Body))
	if err != nil {
		return server.Response{}, fmt.Errorf("make request: %w", err)
	}
	sent.Header.Set("Accept", "application/json")
	sent.Header.Set("Content-Type", contentType(request))
	answer, err := p.client.Do(sent)
	if err != nil {
		return server.Response{}, fmt.Errorf("send request: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return server.Response{}, fmt.Errorf("read answer: %w", err)
	}
	return server.Response{Code: answer.StatusCode, Body: string(bytes.TrimSpace(body))}, nil
}

func contentType(request server.Request) string {
	if request.ContentType == "" {
		return "application/json"
	}
	return request.ContentType
}

// compare returns how the answers differ.
func (p *pair) compare(model, actual server.Response) error {
	if model.Code != actual.Code {
		return fmt.Errorf("the codes differ: kube-apiserver answers %d %s\nthe model %d %s", actual.Code, actual.Body,
			model.Code, model.Body)
	}
	inModel, err := decodeAnswer(model.Body)
	if err != nil {
		return err
	}
	inReal, err := decodeAnswer(actual.Body)
	if err != nil {
		return err
	}
	if !p.dryRun {
		err = p.learn(inModel, inReal, p.prefix)
	}
	if err != nil {
		return fmt.Errorf("%w: kube-apiserver answers %s\nthe model %s", err, actual.Body, model.Body)
	}
	if inReal, err = decodeAnswer(p.toModel(actual.Body)); err != nil {
		return err
	}
	if p.dryRun {
		inModel, inReal = withoutUID(inModel), withoutUID(inReal)
	}
	want, got := normalize(inReal, p.prefix), normalize(inModel, p.prefix)
	if want != got {
		return fmt.Errorf("the answers differ: kube-apiserver\n%s\nthe model\n%s", want, got)
	}
	return nil
}

// names translates UIDs, resource versions and times between the servers.
type names struct {
	realUID, modelUID map[string]string
	realVersion       map[version]string
	modelVersion      map[string]version
	// times are the times that kube-apiserver set, by version and field.
	times map[version]map[string]string
	// latest is the latest version of each object, by UID without the count at its end.
	latest map[string]version
}

// version is a version of the object with the UID in the model.
type version struct{ uid, number string }

func newNames() *names {
	return &names{map[string]string{}, map[string]string{}, map[version]string{}, map[string]version{},
		map[version]map[string]string{}, map[string]version{}}
}

var (
	modelUIDs = regexp.MustCompile(`uid-[a-z0-9-]+`)
	realUIDs  = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	timesSet  = regexp.MustCompile(`"([\w/]+)"(:|,"value":)"` + server.Now + `"`)
	deletions = regexp.MustCompile(`("/metadata/deletionTimestamp","value":)"[^"]+"`)
	versions  = regexp.MustCompile(`("resourceVersion":|"/metadata/resourceVersion","value":)"(\d+)"`)
)

// toReal translates a request for the object. A version that never was becomes 1.
func (n *names) toReal(key server.Key, body string) string {
	base := strings.TrimSuffix(key.UID(0), "0")
	meant := n.meant(base, body)
	body = timesSet.ReplaceAllStringFunc(body, func(found string) string {
		parts := timesSet.FindStringSubmatch(found)
		return `"` + parts[1] + `"` + parts[2] + `"` + cmp.Or(n.times[meant][path.Base(parts[1])], server.Now) + `"`
	})
	body = modelUIDs.ReplaceAllStringFunc(body, func(uid string) string { return cmp.Or(n.realUID[uid], uid) })
	return versions.ReplaceAllStringFunc(body, func(found string) string {
		parts := versions.FindStringSubmatch(found)
		for known, actual := range n.realVersion {
			if known.number == parts[2] && strings.HasPrefix(known.uid, base) {
				return parts[1] + `"` + actual + `"`
			}
		}
		return parts[1] + `"1"`
	})
}

// meant returns the version of the object that the request has, or the latest one.
func (n *names) meant(base, body string) version {
	found := versions.FindStringSubmatch(body)
	for _, uid := range modelUIDs.FindAllString(body, -1) {
		if found != nil && strings.HasPrefix(uid, base) && n.times[version{uid, found[2]}] != nil {
			return version{uid, found[2]}
		}
	}
	return n.latest[base]
}

// toModel translates UIDs, versions and tested times of deletions of the real server.
func (n *names) toModel(body string) string {
	body = deletions.ReplaceAllString(body, `${1}"`+server.Now+`"`)
	body = realUIDs.ReplaceAllStringFunc(body, func(uid string) string { return cmp.Or(n.modelUID[uid], uid) })
	return versions.ReplaceAllStringFunc(body, func(found string) string {
		parts := versions.FindStringSubmatch(found)
		if known, ok := n.modelVersion[parts[2]]; ok {
			return parts[1] + `"` + known.number + `"`
		}
		return found
	})
}

// learn records the UIDs and versions of two answers that must have the same objects. It
// returns an error if one server has a new object or version and the other has not.
func (n *names) learn(model, actual any, prefix string) error {
	models, reals := objectsOf(model, prefix), objectsOf(actual, prefix)
	if len(models) != len(reals) {
		return fmt.Errorf("the answers have %d and %d objects", len(reals), len(models))
	}
	for i := range models {
		if err := n.learnObject(models[i], reals[i]); err != nil {
			return err
		}
	}
	return nil
}

func (n *names) learnObject(model, actual document) error {
	modelUID, modelVersion := metaOf(model, "uid"), metaOf(model, "resourceVersion")
	realUID, realVersion := metaOf(actual, "uid"), metaOf(actual, "resourceVersion")
	if (modelUID == "") != (realUID == "") || (modelVersion == "") != (realVersion == "") {
		return errors.New("only one object has a UID or a version")
	}
	if modelUID == "" || modelVersion == "" {
		return nil
	}
	v := version{modelUID, modelVersion}
	switch known, isKnown := n.modelVersion[realVersion]; {
	case cmp.Or(n.realUID[modelUID], realUID) != realUID:
		return errors.New("only kube-apiserver has a new object")
	case cmp.Or(n.modelUID[realUID], modelUID) != modelUID:
		return errors.New("only the model has a new object")
	case cmp.Or(n.realVersion[v], realVersion) != realVersion:
		return errors.New("only kube-apiserver has a new version")
	case isKnown && known != v:
		return errors.New("only the model has a new version")
	}
	n.realUID[modelUID], n.modelUID[realUID] = realUID, modelUID
	n.realVersion[v], n.modelVersion[realVersion] = realVersion, v
	n.times[v] = map[string]string{}
	collectTimes(actual, n.times[v])
	n.latest[strings.TrimRight(modelUID, "0123456789")] = v
	return nil
}
