use insta::assert_snapshot;

use super::detect;

fn check(lines: &str) -> String {
    let each = lines.lines().map(|line| {
        let found: Vec<String> = detect(line).iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{line}\n    {}\n", if found.is_empty() { "none".to_owned() } else { found.join(" ") })
    });
    each.collect()
}

#[test]
fn lines_of_plain_scripts() {
    assert_snapshot!(check(
        "step 10 loss 0.5\n\
         step=10 loss=0.5\n\
         epoch 3: loss 0.5, acc 0.9\n\
         loss: 0.5\n\
         loss 1e-3 acc 98.5%\n\
         step 200: train loss 2.4, val loss 2.5\n\
         iter 10: loss 3.2, time 5.0ms, mfu 3.1%\n\
         [2026-11-21 13:32:53] INFO step 10 | loss nan | lr 5e-05 | 12.5 it/s\n\
         step 7 12ms loss .5"
    ), @"
    step 10 loss 0.5
        loss=0.5
    step=10 loss=0.5
        loss=0.5
    epoch 3: loss 0.5, acc 0.9
        loss=0.5 acc=0.9
    loss: 0.5
        loss=0.5
    loss 1e-3 acc 98.5%
        loss=0.001 acc=98.5
    step 200: train loss 2.4, val loss 2.5
        train loss=2.4 val loss=2.5
    iter 10: loss 3.2, time 5.0ms, mfu 3.1%
        loss=3.2
    [2026-11-21 13:32:53] INFO step 10 | loss nan | lr 5e-05 | 12.5 it/s
        loss=NaN lr=0.00005
    step 7 12ms loss .5
        loss=0.5
    ");
}

#[test]
fn lines_of_frameworks() {
    assert_snapshot!(check(
        "{'loss': 0.5, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 0.03}\n\
         {'loss': '0.5', 'grad_norm': '1.2', 'learning_rate': '5e-05', 'epoch': '0.03'}\n\
         {'eval_loss': 0.4, 'eval_accuracy': 0.9, 'eval_runtime': 5.1, 'eval_samples_per_second': 197.2, 'epoch': 1.0}\n\
         Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.300039\n\
         Epoch: [0][  10/5004]\tTime  0.3 ( 0.5)\tLoss 6.9e+00 (7.0e+00)\tAcc@1   0.39 (  0.20)\n\
         Epoch 1/5 1875/1875 [====] - 5s 2ms/step - loss: 0.5 - accuracy: 0.9 - val_loss: 0.4\n\
         1875/1875 ━━━━━━━━━━ 5s 2ms/step - accuracy: 0.8 - loss: 0.45\n\
         Epoch 3:  45%|####      | 45/100 [00:03<00:04, 12.3it/s, v_num=0, train_loss=0.3]\n\
         \x20iteration      100/  500000 | consumed samples: 51200 | learning rate: 1.0E-04 | lm loss: 1.0E+01 | grad norm: 1.5 |"
    ), @"
    {'loss': 0.5, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 0.03}
        loss=0.5 grad_norm=1.2 learning_rate=0.00005
    {'loss': '0.5', 'grad_norm': '1.2', 'learning_rate': '5e-05', 'epoch': '0.03'}
        loss=0.5 grad_norm=1.2 learning_rate=0.00005
    {'eval_loss': 0.4, 'eval_accuracy': 0.9, 'eval_runtime': 5.1, 'eval_samples_per_second': 197.2, 'epoch': 1.0}
        eval_loss=0.4 eval_accuracy=0.9
    Train Epoch: 1 [0/60000 (0%)]	Loss: 2.300039
        loss=2.300039
    Epoch: [0][  10/5004]	Time  0.3 ( 0.5)	Loss 6.9e+00 (7.0e+00)	Acc@1   0.39 (  0.20)
        loss=6.9 acc@1=0.39
    Epoch 1/5 1875/1875 [====] - 5s 2ms/step - loss: 0.5 - accuracy: 0.9 - val_loss: 0.4
        loss=0.5 accuracy=0.9 val_loss=0.4
    1875/1875 ━━━━━━━━━━ 5s 2ms/step - accuracy: 0.8 - loss: 0.45
        accuracy=0.8 loss=0.45
    Epoch 3:  45%|####      | 45/100 [00:03<00:04, 12.3it/s, v_num=0, train_loss=0.3]
        train_loss=0.3
     iteration      100/  500000 | consumed samples: 51200 | learning rate: 1.0E-04 | lm loss: 1.0E+01 | grad norm: 1.5 |
        learning rate=0.0001 lm loss=10 grad norm=1.5
    ");
}

#[test]
fn prose_has_no_metrics() {
    assert_snapshot!(check(
        "In epoch 3 the loss 5 of the runs had was small\n\
         loss 5 times higher than in epoch 3\n\
         step 3: loss 2 of 5 shards\n\
         weight loss: 5 people of 10\n\
         using loss function 2 with precision 16\n\
         Test set: Average loss: 0.0487, Accuracy: 9835/10000 (98%)\n\
         version of accuracy: 1.2.3\n\
         loading map: 12:30 of epoch 1\n\
         step 3: no loss\n\
         accuracy"
    ), @"
    In epoch 3 the loss 5 of the runs had was small
        none
    loss 5 times higher than in epoch 3
        none
    step 3: loss 2 of 5 shards
        none
    weight loss: 5 people of 10
        none
    using loss function 2 with precision 16
        none
    Test set: Average loss: 0.0487, Accuracy: 9835/10000 (98%)
        none
    version of accuracy: 1.2.3
        none
    loading map: 12:30 of epoch 1
        none
    step 3: no loss
        none
    accuracy
        none
    ");
}
