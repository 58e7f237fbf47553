// Package metrics counts the volumes and claims of the cluster under the names
// and labels of kube-controller-manager, so that dashboards stay as they are:
//
//	metric                          labels                                             counts
//	pv_collector_total_pv_count     plugin_name, volume_mode                           volumes
//	pv_collector_bound_pv_count     storage_class                                      volumes in phase Bound
//	pv_collector_unbound_pv_count   storage_class                                      all other volumes
//	pv_collector_bound_pvc_count    namespace, storage_class, volume_attributes_class  claims in phase Bound
//	pv_collector_unbound_pvc_count  namespace, storage_class, volume_attributes_class  all other claims
//
// [Collector] counts the objects in the caches when metrics are read. [Operations] measures
// provisioning, deletion and recycling of volumes, and calls of in-tree plugins.
package metrics
