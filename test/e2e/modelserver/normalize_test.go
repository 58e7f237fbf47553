package modelserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

type document = map[string]any

// ignored are the fields that only kube-apiserver sets, by kind. The model need not have
// them, as none of our programs reads them.
var ignored = map[string][]string{
	"Pod": {
		"spec.dnsPolicy", "spec.enableServiceLinks", "spec.preemptionPolicy", "spec.priority", "spec.restartPolicy",
		"spec.schedulerName", "spec.securityContext", "spec.terminationGracePeriodSeconds", "spec.tolerations",
		"spec.containers", "status.qosClass", "status.observedGeneration",
	},
}

func decodeAnswer(body string) (any, error) {
	if !strings.HasPrefix(body, "{") {
		return body, nil
	}
	var d document
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		return nil, fmt.Errorf("decode answer %s: %w", body, err)
	}
	return d, nil
}

// objectsOf returns the objects in an answer whose names have the prefix.
func objectsOf(answer any, prefix string) []document {
	d, _ := answer.(document)
	items, isList := d["items"].([]any)
	if !isList {
		items = []any{d}
	}
	var found []document
	for _, item := range items {
		if object, _ := item.(document); strings.HasPrefix(metaOf(object, "name"), prefix) {
			found = append(found, object)
		}
	}
	return found
}

// metaOf returns a field of the metadata.
func metaOf(d document, field string) string {
	meta, _ := d["metadata"].(document)
	return textAt(meta, field)
}

// withoutUID removes the UID of an object that is not stored.
func withoutUID(answer any) any {
	d, _ := answer.(document)
	if meta, ok := d["metadata"].(document); ok {
		delete(meta, "uid")
	}
	return answer
}

// collectTimes adds the times that kube-apiserver set.
func collectTimes(d document, to map[string]string) {
	for name, value := range d {
		switch v := value.(type) {
		case document:
			collectTimes(v, to)
		case string:
			if isNow(v) {
				to[name] = v
			}
		}
	}
}

// isNow reports whether a server set the time: what clients set is from 2020.
func isNow(text string) bool {
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && at.Year() > 2020
}

func textAt(d document, field string) string {
	s, _ := d[field].(string)
	return s
}

// normalize returns the answer without what may differ between the servers.
func normalize(answer any, prefix string) string {
	d, ok := answer.(document)
	if !ok {
		return fmt.Sprint(answer)
	}
	switch items, isList := d["items"].([]any); {
	case isList:
		d["items"] = normalizeItems(items, textAt(d, "kind"), prefix)
		d["metadata"] = nil
	case d["kind"] == "Status" && d["status"] == "Failure":
		details, _ := d["details"].(document)
		d = document{"code": d["code"], "reason": d["reason"], "causes": causes(d), "name": details["name"],
			"group": details["group"], "kind": details["kind"]}
	default:
		normalizeObject(d, textAt(d, "kind"))
	}
	body, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(body)
}

func normalizeItems(items []any, kind, prefix string) []any {
	items = slices.DeleteFunc(items, func(item any) bool {
		object, _ := item.(document)
		return !strings.HasPrefix(metaOf(object, "name"), prefix)
	})
	for _, item := range items {
		normalizeObject(item.(document), strings.TrimSuffix(kind, "List"))
	}
	return items
}

// normalizeObject removes versions and managed fields, and replaces the times of the
// servers.
func normalizeObject(d document, kind string) {
	if meta, ok := d["metadata"].(document); ok {
		delete(meta, "resourceVersion")
		delete(meta, "managedFields")
	}
	for _, path := range ignored[kind] {
		outer, inner, _ := strings.Cut(path, ".")
		if part, ok := d[outer].(document); ok {
			delete(part, inner)
		}
	}
	replaceTimes(d)
}

func replaceTimes(d document) {
	for name, value := range d {
		switch v := value.(type) {
		case document:
			replaceTimes(v)
		case string:
			if isNow(v) {
				d[name] = "now"
			}
		}
	}
}

// causes returns the fields of an error, with the kinds of errors.
func causes(status document) []string {
	details, _ := status["details"].(document)
	list, _ := details["causes"].([]any)
	var found []string
	for _, cause := range list {
		c, _ := cause.(document)
		reason := c["reason"]
		// Before 1.36 kube-apiserver forbade changes of a class with another reason.
		if !harness.IsNewest() && details["kind"] == "StorageClass" && reason == "FieldValueForbidden" {
			reason = "FieldValueInvalid"
		}
		found = append(found, fmt.Sprint(reason, " ", c["field"]))
	}
	slices.Sort(found)
	return slices.Compact(found)
}
