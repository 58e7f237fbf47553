package families

// data are finalizers of databases and message brokers.
var data = []Family{
	{
		Name: "Strimzi", Finalizers: []string{"strimzi.io/topic-operator"}, Kinds: []string{"KafkaTopic.kafka.strimzi.io"},
		Controller: Controller{Name: "the topic operator of the Kafka cluster", Commands: []string{"topic_operator_run.sh"}},
		When:       "the topic is deleted in Kafka",
		Alive:      "the Deployment CLUSTER-entity-operator, beside the Kafka cluster",
		Force:      "the topic stays in Kafka with its messages",
		Source:     "https://github.com/strimzi/strimzi-kafka-operator/blob/main/topic-operator/src/main/java/io/strimzi/operator/topic/KubernetesHandler.java",
	},
	{
		Name: "CloudNativePG", Finalizers: []string{"cnpg.io/deleteDatabase", "cnpg.io/deletePublication", "cnpg.io/deleteSubscription"},
		Kinds:      []string{"Database.postgresql.cnpg.io", "Publication.postgresql.cnpg.io", "Subscription.postgresql.cnpg.io"},
		Controller: Controller{Name: "the primary instance of the PostgreSQL cluster", Labels: map[string]string{"cnpg.io/podRole": "instance"}},
		When:       "the instance has dropped the database, the publication or the subscription, or the reclaim policy keeps it",
		Alive:      "the pods of the Cluster with the label cnpg.io/podRole=instance",
		Force:      "the database stays in PostgreSQL with its data",
		Source:     "https://github.com/cloudnative-pg/cloudnative-pg/blob/main/pkg/utils/finalizers.go",
	},
	{
		Name: "Zalando Postgres operator", Finalizers: []string{"postgres-operator.acid.zalan.do"}, Kinds: []string{"postgresql.acid.zalan.do"},
		Controller: Controller{Name: "postgres-operator", Images: []string{"acid/postgres-operator", "zalando/postgres-operator"}},
		When:       "the StatefulSet, services and secrets of the cluster are deleted",
		Alive:      "the Deployment postgres-operator",
		Force:      "the StatefulSet and its volumes stay behind",
		Source:     "https://github.com/zalando/postgres-operator/blob/master/pkg/cluster/cluster.go",
	},
	{
		Name: "Crunchy Postgres operator", Finalizers: []string{"postgres-operator.crunchydata.com/finalizer", "*.postgres-operator.crunchydata.com/finalizer"},
		Controller: Controller{
			Name: "pgo", Images: []string{"crunchydata/postgres-operator"},
			Labels: map[string]string{"postgres-operator.crunchydata.com/control-plane": "postgres-operator"}, Namespaces: []string{"postgres-operator"},
		},
		When:   "the instances are stopped, the primary last",
		Alive:  "the Deployment postgres-operator/pgo",
		Force:  "instances are stopped in any order, and replicas may miss the last writes",
		Source: "https://github.com/CrunchyData/postgres-operator/blob/main/internal/naming/names.go",
	},
	percona("Percona XtraDB Cluster operator", "percona-xtradb-cluster-operator", "pkg/naming/naming.go",
		[]string{"percona.com/delete-pxc-pods-in-order", "percona.com/delete-pxc-pvc", "percona.com/delete-proxysql-pvc", "percona.com/delete-ssl"},
		"PerconaXtraDBCluster.pxc.percona.com"),
	percona("Percona operator for MySQL", "percona-server-mysql-operator", "pkg/naming/naming.go",
		[]string{"percona.com/delete-mysql-pods-in-order", "percona.com/delete-mysql-pvc", "percona.com/delete-ssl", "percona.com/delete-backup"},
		"PerconaServerMySQL.ps.percona.com", "PerconaServerMySQLBackup.ps.percona.com"),
	percona("Percona operator for MongoDB", "percona-server-mongodb-operator", "pkg/naming/naming.go",
		[]string{"percona.com/delete-psmdb-pods-in-order", "percona.com/delete-psmdb-pvc", "percona.com/delete-pitr-chunks", "percona.com/delete-backup"},
		"PerconaServerMongoDB.psmdb.percona.com", "PerconaServerMongoDBBackup.psmdb.percona.com"),
	percona("Percona operator for PostgreSQL", "percona-postgresql-operator", "percona/naming/finalizers.go",
		[]string{"percona.com/delete-pvc", "percona.com/delete-ssl", "percona.com/stop-watchers"},
		"PerconaPGCluster.pgv2.percona.com"),
	{
		Name: "MongoDB Atlas operator", Finalizers: []string{"mongodbatlas/finalizer"},
		Controller: Controller{
			Name: "mongodb-atlas-operator", Images: []string{"mongodb-atlas-kubernetes-operator"}, Leases: []string{"06d035fb.mongodb.com"},
			Namespaces: []string{"mongodb-atlas-system"},
		},
		When:   "the resource is deleted in Atlas, or its deletion protection keeps the resource",
		Alive:  "the Deployment mongodb-atlas-operator and its Lease 06d035fb.mongodb.com",
		Force:  "the project, cluster or user stays in Atlas and is paid for",
		Source: "https://github.com/mongodb/mongodb-atlas-kubernetes/blob/main/internal/controller/customresource/finalizer.go",
	},
	{
		Name: "cass-operator", Finalizers: []string{"finalizer.cassandra.datastax.com"}, Kinds: []string{"CassandraDatacenter.cassandra.datastax.com"},
		Controller: Controller{Name: "cass-operator", Images: []string{"cass-operator"}, Leases: []string{"b569adb7.cassandra.datastax.com"}, Namespaces: []string{"cass-operator"}},
		When:       "the operator has deleted the claims of the datacenter, and decommissioned its nodes if asked",
		Alive:      "the Deployment cass-operator-controller-manager and its Lease b569adb7.cassandra.datastax.com",
		Force:      "claims and their volumes stay behind",
		Source:     "https://github.com/k8ssandra/cass-operator/blob/master/apis/cassandra/v1beta1/cassandradatacenter_types.go",
	},
	{
		Name: "RabbitMQ", Finalizers: []string{"deletion.finalizers.rabbitmqclusters.rabbitmq.com"}, Kinds: []string{"RabbitmqCluster.rabbitmq.com"},
		Controller: Controller{
			Name: "rabbitmq-cluster-operator", Images: []string{"rabbitmqoperator/cluster-operator", "rabbitmq-cluster-operator"},
			Labels: map[string]string{"app.kubernetes.io/name": "rabbitmq-cluster-operator"}, Leases: []string{"rabbitmq-cluster-operator-leader-election"},
			Namespaces: []string{"rabbitmq-system"},
		},
		When:   "the operator has marked the pods, so that they end without waiting for synchronized queues",
		Alive:  "the Deployment rabbitmq-system/rabbitmq-cluster-operator and its Lease rabbitmq-cluster-operator-leader-election",
		Force:  "pods wait for their queues until the end of their grace period of a week",
		Source: "https://github.com/rabbitmq/cluster-operator/blob/main/controllers/reconcile_finalizer.go",
	},
	{
		Name: "Redpanda", Finalizers: []string{"operator.redpanda.com/finalizer"},
		Controller: Controller{Name: "redpanda-operator", Images: []string{"redpanda-operator"}, Leases: []string{"aa9fc693.vectorized.io"}},
		When:       "the topic, user or cluster is deleted in Redpanda",
		Alive:      "the Deployment redpanda-operator and its Lease aa9fc693.vectorized.io",
		Force:      "the topic or user stays in Redpanda, or the workload of the cluster stays behind",
		Source:     "https://github.com/redpanda-data/redpanda-operator/blob/main/operator/internal/controller/redpanda/topic_controller.go",
	},
	{
		Name: "Redis operator of Opstree", Finalizers: []string{"redisFinalizer", "redisClusterFinalizer", "redisReplicationFinalizer", "redisSentinelFinalizer"},
		Kinds: []string{
			"Redis.redis.redis.opstreelabs.in", "RedisCluster.redis.redis.opstreelabs.in", "RedisReplication.redis.redis.opstreelabs.in",
			"RedisSentinel.redis.redis.opstreelabs.in",
		},
		Controller: Controller{Name: "redis-operator", Images: []string{"opstree/redis-operator"}, Leases: []string{"6cab913b.redis.opstreelabs.in"}},
		When:       "the claims of the instances are deleted, unless they are to be kept",
		Alive:      "the Deployment redis-operator and its Lease 6cab913b.redis.opstreelabs.in",
		Force:      "claims and their volumes stay behind",
		Source:     "https://github.com/OT-CONTAINER-KIT/redis-operator/blob/main/internal/k8sutils/finalizer.go",
	},
	{
		Name: "ClickHouse operator of Altinity", Finalizers: []string{"finalizer.clickhouseinstallation.altinity.com"},
		Controller: Controller{Name: "clickhouse-operator", Images: []string{"altinity/clickhouse-operator"}, Labels: map[string]string{"app": "clickhouse-operator"}},
		When:       "the tables, StatefulSets and claims of the installation are deleted, as its reclaim policies say",
		Alive:      "the Deployment clickhouse-operator",
		Force:      "StatefulSets, claims and ZooKeeper paths of the replicas stay behind",
		Source:     "https://github.com/Altinity/clickhouse-operator/blob/master/pkg/controller/chi/worker.go",
	},
	{
		Name: "MariaDB operator", Finalizers: []string{"*.k8s.mariadb.com/finalizer"},
		Controller: Controller{Name: "mariadb-operator", Images: []string{"mariadb-operator"}, Labels: map[string]string{"app.kubernetes.io/name": "mariadb-operator"}},
		When:       "the database, user or grant is dropped in MariaDB, or kept by its cleanup policy",
		Alive:      "the Deployment mariadb-operator",
		Force:      "the database, user or grant stays in MariaDB",
		Source:     "https://github.com/mariadb-operator/mariadb-operator/blob/main/internal/controller/database_controller_finalizer.go",
	},
	{
		Name: "KubeBlocks", Finalizers: []string{"*.kubeblocks.io/finalizer"},
		Controller: Controller{Name: "kubeblocks", Images: []string{"apecloud/kubeblocks"}, Leases: []string{"001c317f.kubeblocks.io"}, Namespaces: []string{"kb-system"}},
		When:       "the components of the cluster are deleted, as its termination policy says",
		Alive:      "the Deployment kb-system/kubeblocks and its Lease 001c317f.kubeblocks.io",
		Force:      "components and claims of the cluster stay behind",
		Source:     "https://github.com/apecloud/kubeblocks/blob/main/pkg/constant/finalizer.go",
	},
}

// percona returns the row of an operator of Percona.
func percona(name, program, path string, finalizers []string, kinds ...string) Family {
	return Family{
		Name: name, Finalizers: finalizers, Kinds: kinds,
		Controller: Controller{
			Name: program, Images: []string{program}, Labels: map[string]string{"app.kubernetes.io/name": program},
		},
		When:   "the pods are stopped in order, and the claims, certificates or backups that the finalizer names are deleted",
		Alive:  "the Deployment " + program,
		Force:  "claims, secrets or backups stay behind; pods are stopped in any order",
		Source: "https://github.com/percona/" + program + "/blob/main/" + path,
	}
}
